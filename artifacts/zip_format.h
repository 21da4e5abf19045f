// The records of a zip file that reading and writing share.
// Source: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.
#pragma once

#include <cstddef>
#include <cstdint>

namespace run_model::zip {

inline constexpr std::uint32_t kLocalHeader = 0x04034b50;
inline constexpr std::uint32_t kCentralHeader = 0x02014b50;
inline constexpr std::uint32_t kEndRecord = 0x06054b50;
inline constexpr std::uint32_t kEndRecord64 = 0x06064b50;
inline constexpr std::uint32_t kEndLocator64 = 0x07064b50;

// Bytes of each record without its name, extra fields and comment.
inline constexpr std::size_t kLocalHeaderBytes = 30;
inline constexpr std::size_t kCentralHeaderBytes = 46;
inline constexpr std::size_t kEndRecordBytes = 22;
inline constexpr std::size_t kEndRecord64Bytes = 56;
inline constexpr std::size_t kEndLocator64Bytes = 20;

inline constexpr std::uint16_t kExtraZip64 = 0x0001;
inline constexpr std::uint16_t kFlagEncrypted = 0x0001;
inline constexpr std::uint16_t kFlagUtf8 = 0x0800;

inline constexpr std::uint16_t kMethodStored = 0;
inline constexpr std::uint16_t kMethodDeflated = 8;

// A value that stands in a zip64 extra field instead.
inline constexpr std::uint32_t kIn64 = 0xFFFFFFFF;

}  // namespace run_model::zip
