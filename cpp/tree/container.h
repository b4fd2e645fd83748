// The container format of a model file: the positions of its arrays and their integrity. tree/pack.h defines the
// arrays. All numbers are little-endian:
//
//    0  magic, 8 bytes
//    8  u32 format version          12  u32 CRC-32 of all that follows
//   16  u64 size of the file        24  u64 size of the header
//   32  u32 number of arrays        36  u32 zero
//   40  the table, 32 bytes an array: name (16 bytes, padded with zeros), u32 type, u32 tree, u64 number of elements
//       the header (JSON, which the engine does not read), then the arrays in the order of the table
//
// Header and arrays begin at multiples of 8. There are no offsets that could be wrong: the sizes must add up to the
// file size or the file is refused before any memory of a stated size is allocated.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spinney {

using Bytes = std::span<const unsigned char>;

constexpr std::uint32_t newest_format = 1;
constexpr std::uint64_t largest_header = std::uint64_t{1} << 28;

enum class ElementType : std::uint32_t { u8 = 1, u16 = 2, u32 = 3, f32 = 4, f64 = 5 };
std::size_t size_of(ElementType type);

struct ArrayView {
  std::string_view name;
  std::uint32_t tree;  // index of the tree it belongs to
  ElementType type;
  std::size_t count;
  const unsigned char* data;  // possibly unaligned: the file may start anywhere in memory
};

struct ModelView {
  std::string_view header;
  std::vector<ArrayView> arrays;  // those of one tree are adjacent, trees ascend from 0
  std::uint32_t n_trees = 0;

  std::span<const ArrayView> arrays_of(std::uint32_t tree) const;
};

// Views into `file`. Throws std::invalid_argument, whose message continues "This model file ".
ModelView read_model(Bytes file);

struct StoredArray {
  std::string name;  // at most 15 characters
  std::uint32_t tree;
  ElementType type;
  std::size_t count;
  std::string bytes;
};
std::string write_model(std::string_view header, const std::vector<StoredArray>& arrays);

// The checksum of a file with these bytes, and its position.
std::uint32_t checksum(Bytes file);
constexpr std::size_t checksum_at = 12;

}  // namespace spinney
