// jpeglib.h needs FILE and does not say so.
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include <run_model/error.h>
#include "preprocess/decoding/decoders.h"
#include "preprocess/decoding/exif.h"

namespace run_model {
namespace {

// Far more than any encoder writes; each scan may cost a pass over the picture for few bytes.
constexpr int kMaxScans = 500;

constexpr int kApp1 = JPEG_APP0 + 1;
constexpr int kJpegLs = 0xF7;  // SOF55 of ITU-T T.87
constexpr int kLongestSegment = 0xFFFF;
constexpr JDIMENSION kRowsAtOnce = 16;

// libjpeg's state and what it calls. It leaves by longjmp, which runs no destructors: this struct
// and every function between attempt() and an escape have none to run.
struct Decoder {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  bool passed_over;  // bytes between two segments of the header
  std::jmp_buf start;
  int message_code;
  char message[JMSG_LENGTH_MAX];  // why it escaped
  const JOCTET* file;
  std::size_t file_size;
  std::uint8_t* to;  // rows of row_bytes
  std::size_t row_bytes;
  JDIMENSION row_count;
};

Decoder& decoder_of(j_common_ptr info) { return *static_cast<Decoder*>(info->client_data); }

[[noreturn]] void escape(j_common_ptr info) {
  Decoder& decoder = decoder_of(info);
  decoder.message_code = info->err->msg_code;
  info->err->format_message(info, decoder.message);
  std::longjmp(decoder.start, 1);
}

[[noreturn]] void escape(j_decompress_ptr info, const char* message, std::size_t number) {
  Decoder& decoder = decoder_of(reinterpret_cast<j_common_ptr>(info));
  decoder.message_code = JMSG_NOMESSAGE;
  std::snprintf(decoder.message, sizeof decoder.message, message, number);
  std::longjmp(decoder.start, 1);
}

[[noreturn]] void truncated(j_decompress_ptr info) {
  escape(info, "the file is truncated at byte %zu, before the end of the picture",
         decoder_of(reinterpret_cast<j_common_ptr>(info)).file_size);
}

// Warnings that leave no pixel in doubt: numbers that a sequential scan does not use, as phones
// write them, the version of JFIF, and zeros that fill the file up before its end.
bool harmless(const Decoder& decoder) {
  const int code = decoder.errors.msg_code;
  if (code != JWRN_EXTRANEOUS_DATA) {
    return code == JWRN_NOT_SEQUENTIAL || code == JWRN_JFIF_MAJOR;
  }
  const int passed_over = decoder.errors.msg_parm.i[0];
  const JOCTET* const end = decoder.source.next_input_byte;
  return decoder.errors.msg_parm.i[1] == JPEG_EOI && end - decoder.file >= passed_over &&
         std::all_of(end - passed_over, end, [](JOCTET byte) { return byte == 0; });
}

// libjpeg tells of warnings (level -1) and of what it does. It passes over restart markers between
// two scans in silence, where they are the end of a scan that has more of them than blocks to fill.
void on_message(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  const int marker = info->err->msg_parm.i[0];
  const auto decompress = reinterpret_cast<j_decompress_ptr>(info);
  const bool in_header = decompress->input_scan_number == 0;
  const bool surplus_restart =
      code == JTRC_PARMLESS_MARKER && marker >= JPEG_RST0 && marker <= JPEG_RST0 + 7;
  if (surplus_restart && !in_header) {
    escape(reinterpret_cast<j_decompress_ptr>(info),
           "a scan has more restart markers than it needs", 0);
  }
  if (level < 0) {
    if (code == JWRN_EXTRANEOUS_DATA && in_header) {
      decoder_of(info).passed_over = true;
      return;
    }
    if (!harmless(decoder_of(info))) {
      escape(info);
    }
  }
}

boolean on_end_of_file(j_decompress_ptr info) { truncated(info); }

void on_skip(j_decompress_ptr info, long count) {
  jpeg_source_mgr& source = *info->src;
  if (count <= 0) {
    return;
  }
  const auto step = static_cast<std::size_t>(count);
  if (step > source.bytes_in_buffer) {
    truncated(info);
  }
  source.next_input_byte += step;
  source.bytes_in_buffer -= step;
}

void on_progress(j_common_ptr common) {
  const auto info = reinterpret_cast<j_decompress_ptr>(common);
  if (info->input_scan_number > kMaxScans) {
    escape(info, "it has more than %zu scans", kMaxScans);
  }
}

void no_call(j_decompress_ptr) {}
void no_output(j_common_ptr) {}

void read_header(Decoder& decoder) {
  jpeg_decompress_struct& info = decoder.info;
  info.err = jpeg_std_error(&decoder.errors);
  info.client_data = &decoder;
  decoder.errors.error_exit = escape;
  decoder.errors.emit_message = on_message;
  decoder.errors.output_message = no_output;
  jpeg_create_decompress(&info);  // keeps err and client_data

  decoder.source.init_source = no_call;
  decoder.source.fill_input_buffer = on_end_of_file;
  decoder.source.skip_input_data = on_skip;
  decoder.source.resync_to_restart = jpeg_resync_to_restart;
  decoder.source.term_source = no_call;
  decoder.source.next_input_byte = decoder.file;
  decoder.source.bytes_in_buffer = decoder.file_size;
  info.src = &decoder.source;
  decoder.progress.progress_monitor = on_progress;
  info.progress = &decoder.progress;
  jpeg_save_markers(&info, kApp1, kLongestSegment);
  jpeg_read_header(&info, TRUE);
}

// Reads all scans of a picture that has several.
void start(Decoder& decoder) {
  decoder.info.out_color_space = decoder.info.num_components == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&decoder.info);
}

// The next `row_count` rows.
void read_rows(Decoder& decoder) {
  for (JDIMENSION done = 0; done < decoder.row_count;) {
    JSAMPROW rows[kRowsAtOnce];
    const JDIMENSION wanted = std::min(kRowsAtOnce, decoder.row_count - done);
    for (JDIMENSION i = 0; i < wanted; ++i) {
      rows[i] = decoder.to + decoder.row_bytes * (done + i);
    }
    done += jpeg_read_scanlines(&decoder.info, rows, wanted);
  }
}

void finish(Decoder& decoder) { jpeg_finish_decompress(&decoder.info); }

// Whether `step` was done; if not, decoder.message says why.
bool attempt(Decoder& decoder, void (*step)(Decoder&)) {
  if (setjmp(decoder.start) != 0) {
    return false;
  }
  step(decoder);
  return true;
}

[[noreturn]] void unsupported(const std::string& what, const std::string& found,
                              const std::string& hint) {
  throw Error(ErrorKind::kImage, what + ": the JPEG picture " + found, hint);
}

[[noreturn]] void refuse_jpeg(const Decoder& decoder, const std::string& what) {
  constexpr const char* kKinds = "only baseline and progressive JPEG can be read; convert it";
  switch (decoder.message_code) {
    case JERR_OUT_OF_MEMORY:
      throw std::bad_alloc();
    case JERR_BAD_PRECISION:
      unsupported(what, "has " + std::to_string(decoder.errors.msg_parm.i[0]) + " bits a sample",
                  "8 are supported; convert it");
    case JERR_SOF_UNSUPPORTED:
      unsupported(what,
                  "is of kind SOF" + std::to_string(decoder.errors.msg_parm.i[0] - 0xC0) +
                      " (lossless or hierarchical)",
                  kKinds);
    case JERR_UNKNOWN_MARKER:
      if (decoder.errors.msg_parm.i[0] == kJpegLs) {
        unsupported(what, "is of kind JPEG-LS", kKinds);
      }
      [[fallthrough]];
    default:
      damaged_picture(what, "JPEG", decoder.message);
  }
}

// Of a picture with several scans, start() has read them all. What no scan brought libjpeg shows as
// grey, or guesses from the blocks around in a way that differs between its releases.
void check_complete(const jpeg_decompress_struct& info, const std::string& what) {
  constexpr int kGuessed = 10;  // the DC coefficient and those that libjpeg guesses
  for (int i = 0; i < info.num_components; ++i) {
    if (info.comp_info[i].quant_table == nullptr) {
      damaged_picture(what, "JPEG", "it ends before all its colour components");
    }
    // By coefficient: the lowest bit that a scan brought, or -1.
    const bool complete =
        info.coef_bits == nullptr || std::all_of(info.coef_bits[i], info.coef_bits[i] + kGuessed,
                                                 [](int bit) { return bit == 0; });
    if (!complete) {
      damaged_picture(what, "JPEG", "it ends before the last scan of a colour component");
    }
  }
}

// Pillow's getexif() joins the EXIF segments before the first scan, and takes the last XMP packet.
int orientation_in(const jpeg_decompress_struct& info) {
  constexpr std::string_view kXmpMark("http://ns.adobe.com/xap/1.0/\0", 29);
  std::vector<std::uint8_t> tiff;
  Bytes xmp;
  for (jpeg_saved_marker_ptr marker = info.marker_list; marker != nullptr; marker = marker->next) {
    const Bytes body(marker->data, marker->data_length);
    if (const auto exif = behind_mark(body, kExifMark)) {
      tiff.insert(tiff.end(), exif->begin(), exif->end());
    } else if (const auto packet = behind_mark(body, kXmpMark)) {
      xmp = *packet;
    }
  }
  return orientation_of(tiff, xmp);
}

// Bytes between two segments of the header, which other readers pass over too, are what is left of
// a segment that says it is shorter than it is. They may hide a table that decoding needs: one of
// Huffman codes would be taken from the standard.
void check_tables(const jpeg_decompress_struct& info, const std::string& what) {
  if (info.progressive_mode != FALSE || info.arith_code != FALSE) {
    return;  // whose tables have no standard ones
  }
  for (int i = 0; i < info.comps_in_scan; ++i) {
    const jpeg_component_info& component = *info.cur_comp_info[i];
    const bool numbered =
        component.dc_tbl_no < NUM_HUFF_TBLS && component.ac_tbl_no < NUM_HUFF_TBLS;
    if (!numbered || info.dc_huff_tbl_ptrs[component.dc_tbl_no] == nullptr ||
        info.ac_huff_tbl_ptrs[component.ac_tbl_no] == nullptr) {
      damaged_picture(what, "JPEG",
                      "its header has bytes that are of no segment, and lacks a Huffman table");
    }
  }
}

// Pillow's convert("RGB") of its mode CMYK, of a row whose values are stored inverted.
void cmyk_to_rgb(const std::uint8_t* cmyk, int width, std::uint8_t* rgb) {
  const auto divide_by_255 = [](int value) {
    const int rounded = value + 128;
    return ((rounded >> 8) + rounded) >> 8;
  };
  for (int x = 0; x < width; ++x, cmyk += 4, rgb += kImageChannels) {
    const int light = cmyk[3];
    for (int c = 0; c < kImageChannels; ++c) {
      rgb[c] = static_cast<std::uint8_t>(light - divide_by_255((255 - cmyk[c]) * light));
    }
  }
}

class DecoderOwner {
 public:
  explicit DecoderOwner(Bytes file) {
    decoder.file = file.data();
    decoder.file_size = file.size();
  }
  ~DecoderOwner() { jpeg_destroy_decompress(&decoder.info); }
  DecoderOwner(const DecoderOwner&) = delete;
  DecoderOwner& operator=(const DecoderOwner&) = delete;

  Decoder decoder{};
};

void require(bool done, const Decoder& decoder, const std::string& what) {
  if (!done) {
    refuse_jpeg(decoder, what);
  }
}

void read_cmyk(Decoder& decoder, Image& image, const std::string& what) {
  decoder.row_bytes = std::size_t{4} * decoder.info.output_width;
  std::vector<std::uint8_t> rows(decoder.row_bytes * kRowsAtOnce);
  decoder.to = rows.data();
  for (int y = 0; y < image.height(); y += static_cast<int>(decoder.row_count)) {
    decoder.row_count =
        std::min(kRowsAtOnce, decoder.info.output_height - decoder.info.output_scanline);
    require(attempt(decoder, read_rows), decoder, what);
    for (JDIMENSION i = 0; i < decoder.row_count; ++i) {
      cmyk_to_rgb(rows.data() + decoder.row_bytes * i, image.width(),
                  image.row(y + static_cast<int>(i)));
    }
  }
}

}  // namespace

RawPicture decode_jpeg(Bytes file, const std::string& what) {
  DecoderOwner owner(file);
  Decoder& decoder = owner.decoder;
  const jpeg_decompress_struct& info = decoder.info;
  require(attempt(decoder, read_header), decoder, what);
  const auto width = static_cast<int>(info.image_width);
  const auto height = static_cast<int>(info.image_height);
  check_image_size(what, info.image_width, info.image_height);
  RawPicture picture;
  picture.channels = info.num_components;
  picture.orientation = orientation_in(info);
  if (decoder.passed_over) {
    check_tables(info, what);
  }
  if (picture.channels != 1 && picture.channels != 3 && picture.channels != 4) {
    damaged_picture(what, "JPEG",
                    "it has " + std::to_string(picture.channels) + " colour components");
  }

  require(attempt(decoder, start), decoder, what);
  check_complete(info, what);
  picture.image = Image(width, height);
  if (picture.channels == 4) {
    read_cmyk(decoder, picture.image, what);
  } else {
    decoder.to = picture.image.data();
    decoder.row_bytes = picture.image.row_bytes();
    decoder.row_count = info.output_height;
    require(attempt(decoder, read_rows), decoder, what);
  }
  require(attempt(decoder, finish), decoder, what);
  return picture;
}

}  // namespace run_model
