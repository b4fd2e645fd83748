// The chunks of one Arrow column, checked so that they are safe to read.
#pragma once

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "data/arrow.h"

namespace spinney {

[[noreturn]] inline void malformed(const std::string& what) {
  throw std::invalid_argument("The Arrow data is malformed: " + what + ".");
}

// Owns a struct of the interface: moved from the producer's and released once.
template <class T>
class Owned {
 public:
  explicit Owned(T* source) : value_(*source) { source->release = nullptr; }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (value_.release) value_.release(&value_);
  }
  T* get() { return &value_; }
  const T* get() const { return &value_; }
  const T* operator->() const { return &value_; }

 private:
  T value_;
};

using Chunk = std::shared_ptr<Owned<ArrowArray>>;

// Arrow buffers need not be aligned.
template <class T>
T element(const void* buffer, std::int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(buffer) + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

inline bool bit(const void* bitmap, std::int64_t i) {
  return (static_cast<const std::uint8_t*>(bitmap)[i >> 3] >> (i & 7)) & 1;
}

// `length` values of an array from `offset` on, which counts from the start of its buffers.
struct ColumnChunk {
  const ArrowArray* array = nullptr;
  std::int64_t offset = 0;
  std::int64_t length = 0;
  const void* validity = nullptr;         // null: no value is missing
  const void* parent_validity = nullptr;  // of the rows of the table
  std::int64_t parent_offset = 0;
  std::shared_ptr<const void> owner;

  bool has_nulls() const { return validity || parent_validity; }
  bool is_null(std::int64_t i) const {
    return (validity && !bit(validity, offset + i)) || (parent_validity && !bit(parent_validity, parent_offset + i));
  }
  const void* buffer(std::int64_t i) const {
    if (i >= array->n_buffers || !array->buffers[i]) malformed("a buffer is missing");
    return array->buffers[i];
  }
};

inline void check_extent(const ArrowArray& array) {
  constexpr std::int64_t limit = std::int64_t{1} << 48;  // keeps every product below in range
  if (array.length < 0 || array.offset < 0 || array.length > limit || array.offset > limit)
    malformed("a length or an offset is out of range");
  if (array.n_buffers < 0 || array.n_children < 0) malformed("a count is negative");
}

inline const void* validity_of(const ArrowArray& array) {
  return array.n_buffers > 0 && array.null_count != 0 ? array.buffers[0] : nullptr;
}

inline ColumnChunk whole(const ArrowArray& array) {
  check_extent(array);
  ColumnChunk column_chunk;
  column_chunk.array = &array;
  column_chunk.offset = array.offset;
  column_chunk.length = array.length;
  column_chunk.validity = validity_of(array);
  return column_chunk;
}

// Rows of one column: child `j` of each chunk, or the chunk itself.
inline ColumnChunk child_piece(const Chunk& chunk, std::int64_t j) {
  const ArrowArray& parent = *chunk->get();
  if (j >= parent.n_children || !parent.children[j]) malformed("a chunk lacks a column");
  ColumnChunk column_chunk = whole(*parent.children[j]);
  if (column_chunk.length < parent.offset + parent.length) malformed("a column is shorter than its chunk");
  column_chunk.offset += parent.offset;
  column_chunk.length = parent.length;
  column_chunk.parent_validity = validity_of(parent);
  column_chunk.parent_offset = parent.offset;
  return column_chunk;
}

}  // namespace spinney
