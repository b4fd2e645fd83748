#include "tree/container.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace spinney {

static_assert(std::endian::native == std::endian::little, "model files are read in place");

static constexpr std::string_view magic("\x89spinney", 8);
static constexpr std::size_t checked_from = 16, prefix_size = 40, name_size = 16, entry_size = 32;

[[noreturn]] static void refuse(const std::string& why) { throw std::invalid_argument(why); }

// ---- CRC-32 (the one of zip and PNG), eight bytes at a time ---------------------------------------

static constexpr auto crc_tables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = c & 1 ? 0xEDB88320u ^ c >> 1 : c >> 1;
    tables[0][i] = c;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t i = 0; i < 256; ++i) tables[k][i] = tables[0][tables[k - 1][i] & 255] ^ tables[k - 1][i] >> 8;
  return tables;
}();

static std::uint32_t crc32(Bytes bytes) {
  std::uint32_t crc = UINT32_MAX;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    word ^= crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= crc_tables[7 - k][word >> (8 * k) & 255];
  }
  for (; i < bytes.size(); ++i) crc = crc_tables[0][(crc ^ bytes[i]) & 255] ^ crc >> 8;
  return ~crc;
}

std::uint32_t checksum(Bytes file) { return crc32(file.subspan(std::min(checked_from, file.size()))); }

// ---- reading --------------------------------------------------------------------------------------

std::size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::u8:
      return 1;
    case ElementType::u16:
      return 2;
    case ElementType::u32:
    case ElementType::f32:
      return 4;
    case ElementType::f64:
      return 8;
  }
  return 0;
}

template <class T>
static T number_at(Bytes file, std::size_t at) {
  T number;
  std::memcpy(&number, file.data() + at, sizeof number);
  return number;
}

// Takes `n` bytes and the padding to a multiple of 8 from the rest of the file.
static Bytes take(Bytes& rest, std::uint64_t n) {
  if (n > rest.size() || (n + 7) / 8 * 8 > rest.size()) refuse("is damaged: its arrays exceed the file");
  const Bytes taken = rest.first(n);
  rest = rest.subspan((n + 7) / 8 * 8);
  return taken;
}

static void check_prefix(Bytes file) {
  const auto n_magic = std::min(file.size(), magic.size());
  if (n_magic == 0) refuse("is empty");
  if (std::memcmp(file.data(), magic.data(), n_magic) != 0)
    refuse("is not a spinney model file: it has the wrong first bytes");
  if (file.size() < prefix_size) refuse("is cut short");
  const auto version = number_at<std::uint32_t>(file, 8);
  if (version > newest_format)
    refuse("was written by a newer spinney (format " + std::to_string(version) + ", this one reads up to " +
           std::to_string(newest_format) + "): upgrade spinney");
  const auto size = number_at<std::uint64_t>(file, 16);
  if (size > file.size())
    refuse("is cut short: it has " + std::to_string(file.size()) + " of its " + std::to_string(size) + " bytes");
  if (size < file.size()) refuse("is longer than the size in its header");
  if (checksum(file) != number_at<std::uint32_t>(file, checksum_at)) refuse("is damaged: its checksum is wrong");
  if (version == 0 || number_at<std::uint32_t>(file, 36) != 0) refuse("is damaged: its header is invalid");
  if (number_at<std::uint64_t>(file, 24) > largest_header) refuse("has a header that is too large");
}

static ArrayView read_entry(Bytes entry) {
  const char* name = reinterpret_cast<const char*>(entry.data());
  const auto name_end = std::find(name, name + name_size, '\0');
  return {std::string_view(name, static_cast<std::size_t>(name_end - name)), number_at<std::uint32_t>(entry, 20),
          ElementType{number_at<std::uint32_t>(entry, 16)}, number_at<std::uint64_t>(entry, 24), nullptr};
}

ModelView read_model(Bytes file) {
  check_prefix(file);
  ModelView model;
  Bytes rest = file.subspan(prefix_size);
  const Bytes table = take(rest, std::uint64_t{number_at<std::uint32_t>(file, 32)} * entry_size);
  const Bytes header = take(rest, number_at<std::uint64_t>(file, 24));
  model.header = {reinterpret_cast<const char*>(header.data()), header.size()};
  for (std::size_t at = 0; at < table.size(); at += entry_size) {
    ArrayView array = read_entry(table.subspan(at, entry_size));
    const std::size_t element = size_of(array.type);
    if (element == 0 || array.count == 0) refuse("is damaged: it has an array of unknown type");
    if (array.tree > model.n_trees || array.tree + std::uint64_t{1} < model.n_trees)
      refuse("is damaged: its trees are out of order");
    if (array.count > rest.size() / element) refuse("is damaged: its arrays exceed the file");
    array.data = take(rest, array.count * element).data();
    model.n_trees = array.tree + 1;
    model.arrays.push_back(array);
  }
  if (!rest.empty()) refuse("is damaged: its arrays do not fill the file");
  return model;
}

std::span<const ArrayView> ModelView::arrays_of(std::uint32_t tree) const {
  const auto [begin, end] =
      std::equal_range(arrays.begin(), arrays.end(), ArrayView{{}, tree, ElementType::u8, 0, nullptr},
                       [](const ArrayView& a, const ArrayView& b) { return a.tree < b.tree; });
  return {begin, end};
}

// ---- writing --------------------------------------------------------------------------------------

template <class T>
static void append_number(std::string& file, T number) {
  file.append(reinterpret_cast<const char*>(&number), sizeof number);
}

static void append_padded(std::string& file, std::string_view bytes) {
  file.append(bytes);
  file.resize((file.size() + 7) / 8 * 8, '\0');
}

std::string write_model(std::string_view header, const std::vector<StoredArray>& arrays) {
  if (header.size() > largest_header) refuse("would have a header that is too large");
  std::uint64_t size = prefix_size + arrays.size() * entry_size + (header.size() + 7) / 8 * 8;
  for (const StoredArray& array : arrays) size += (array.bytes.size() + 7) / 8 * 8;
  std::string file(magic);
  file.reserve(size);
  append_number(file, newest_format);
  append_number(file, std::uint32_t{0});  // the checksum is set at the end
  append_number(file, size);
  append_number(file, std::uint64_t{header.size()});
  append_number(file, static_cast<std::uint32_t>(arrays.size()));
  append_number(file, std::uint32_t{0});
  for (const StoredArray& array : arrays) {
    file.append(array.name).append(name_size - array.name.size(), '\0');
    append_number(file, array.type);
    append_number(file, array.tree);
    append_number(file, std::uint64_t{array.count});
  }
  append_padded(file, header);
  for (const StoredArray& array : arrays) append_padded(file, array.bytes);
  const std::uint32_t sum = checksum({reinterpret_cast<const unsigned char*>(file.data()), file.size()});
  std::memcpy(file.data() + checksum_at, &sum, sizeof sum);
  return file;
}

}  // namespace spinney
