// The decoders of the formats. What each makes is checked: truncated and damaged files, and
// pictures that are larger than check_image_size allows, are an Error(kImage) whose sentence begins
// with `what`, the file's name in quotes.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <run_model/image.h>
#include "base/byte_reader.h"

namespace run_model {

using Bytes = std::span<const std::uint8_t>;

struct RawPicture {
  Image image;       // as stored, before its orientation is applied
  int channels = 0;  // in the file: 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha or CMYK
  int orientation = 1;  // of its EXIF metadata
};

// Throws Error(kImage) past the end. `what` must outlive the reader.
ByteReader picture_reader(Bytes bytes, const std::string& what,
                          std::endian order = std::endian::big);

// Throws Error(kImage) "<what>: the <format> picture is damaged: <found>".
[[noreturn]] void damaged_picture(const std::string& what, std::string_view format,
                                  const std::string& found);

// Every checksum is compared. Pictures of 8 bits a sample without palette or interlacing, which
// nearly all photographs are, are unfiltered here in less than half of stb_image's time; the others
// are stb_image's.
RawPicture decode_png(Bytes file, const std::string& what);

// By libjpeg-turbo, whose pixels are those of Pillow: both use its exact integer inverse DCT and
// its interpolation of the colour components. Baseline, progressive and arithmetic-coded pictures
// of 8 bits: grey, colour, and CMYK or YCCK, whose values are taken as Adobe's programs store them
// (inverted) and made RGB as in Pillow's convert("RGB"). Huffman tables that are missing, as in
// frames of Motion JPEG, are those of ITU-T T.81's annex K.3.
//
// Refuses what libjpeg-turbo gives an error or a warning for (restart markers out of order …; bytes
// between segments of the header, zeros before the end marker and warnings that concern no pixel
// are passed over), colour components without data, and more scans than any encoder writes. What
// lies after the end marker is not looked at. JPEG has no checksums: a damaged byte that leaves all
// codes valid cannot be found.
RawPicture decode_jpeg(Bytes file, const std::string& what);

// Netpbm's P1 to P6 (PBM, PGM, PPM; plain and raw). Read here and not by stb_image, which knows
// only P5 and P6, does not scale by the greatest value and mistakes the byte order of 16 bits.
// Samples are scaled to 0..255 as Pillow does: round(value / greatest * 255), halves to even.
RawPicture decode_pnm(Bytes file, const std::string& what);

// BMP of Windows and OS/2: palettes of 1 to 8 bits, 16, 24 and 32 bits with any masks, and runs
// (RLE4, RLE8). Read here and not by stb_image, which loses the last entries of OS/2's palettes and
// knows no runs. Alpha is dropped; a colour of fewer bits than 8 is scaled as Pillow does. Refuses
// JPEG and PNG inside.
RawPicture decode_bmp(Bytes file, const std::string& what);

// The first frame, as Pillow's convert("RGB") gives it. stb_image decodes a copy of the file in
// which nothing is transparent, so that transparent pixels have the colour of their palette entry.
// Around a frame smaller than the picture lies the transparent colour, or the first of the palette;
// a frame that reaches beyond the picture enlarges it. Refuses compressed data with fewer pixels
// than the frame, which stb_image would leave out.
RawPicture decode_gif(Bytes file, const std::string& what);

// The merged picture of a Photoshop file. stb_image decodes a copy that has the first three
// channels only: of more it would take the fourth for transparency and change the colours by it,
// where Pillow gives them as stored.
RawPicture decode_psd(Bytes file, const std::string& what);

// stb_image, with the columns from right to left where the header says so, which it overlooks, and
// black for indices beyond the palette, where it takes the first colour. Refuses a palette that
// does not begin at entry 0, which stb_image misreads.
RawPicture decode_tga(Bytes file, const std::string& what);

// By libwebp, which the program opens when it is there to be opened, and refuses WebP without:
// lossy and lossless, alpha dropped, of an animation the first frame, around which all is black.
RawPicture decode_webp(Bytes file, const std::string& what);

// stb_image as it is (PNG, JPEG, GIF, PSD, TGA), but safe for files from anywhere. Grey is
// copied to all three channels, alpha is dropped, and of 16 bits the high byte is kept.
RawPicture decode_with_stb(Bytes file, const std::string& what);

// Unpacks a zlib stream (RFC 1950) of exactly to.size() bytes; false when it is malformed or has
// another size. Its Adler-32 is not looked at.
bool inflate_with_stb(Bytes stream, std::span<std::uint8_t> to);

}  // namespace run_model
