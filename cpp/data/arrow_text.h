// Strings of an Arrow column: reads the three layouts, and encodes strings with a hash table.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "data/arrow_chunks.h"

namespace spinney {

inline bool is_text(std::string_view format) { return format == "u" || format == "U" || format == "vu"; }

// Codes in order of first appearance. The texts point into the chunks, which must outlive the index.
class TextIndex {
 public:
  std::int32_t code_of(std::string_view text) {
    const std::size_t hash = std::hash<std::string_view>{}(text);
    std::size_t slot = hash & (slots_.size() - 1);
    for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
      const auto code = static_cast<std::size_t>(slots_[slot]);
      if (hashes_[code] == hash && texts_[code] == text) return slots_[slot];
    }
    if (texts_.size() >= std::numeric_limits<std::int32_t>::max() / 2) malformed("a column has too many values");
    const auto code = static_cast<std::int32_t>(texts_.size());
    slots_[slot] = code;
    texts_.push_back(text);
    hashes_.push_back(hash);
    if (2 * texts_.size() > slots_.size()) grow();
    return code;
  }

  std::vector<std::string> texts() const { return {texts_.begin(), texts_.end()}; }

 private:
  void grow() {
    slots_.assign(2 * slots_.size(), -1);
    for (std::size_t code = 0; code < hashes_.size(); ++code) {
      std::size_t slot = hashes_[code] & (slots_.size() - 1);
      while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = static_cast<std::int32_t>(code);
    }
  }

  std::vector<std::string_view> texts_;
  std::vector<std::size_t> hashes_;
  std::vector<std::int32_t> slots_ = std::vector<std::int32_t>(64, -1);  // a power of two; -1: free
};

// Layouts `u` and `U`: value i is bytes offsets[i] … offsets[i + 1] of one buffer. The offsets are checked in one pass;
// the interface has no sizes of buffers, so the last offset of the array stands for the length of the bytes.
template <class Offset>
struct OffsetTexts {
  explicit OffsetTexts(const ColumnChunk& p) : offset(p.offset), offsets(p.buffer(1)) {
    if (p.array->n_buffers < 3) malformed("a buffer is missing");
    bytes = static_cast<const char*>(p.array->buffers[2]);
    const auto first = element<Offset>(offsets, offset);
    Offset last = first;
    bool ascends = first >= 0;
    for (std::int64_t i = 1; i <= p.length; ++i) {
      const auto next = element<Offset>(offsets, offset + i);
      ascends &= next >= last;
      last = next;
    }
    if (!ascends || last > element<Offset>(offsets, p.array->offset + p.array->length) || (last > first && !bytes))
      malformed("string offsets do not ascend");
  }
  std::string_view operator[](std::int64_t i) const {
    const auto begin = element<Offset>(offsets, offset + i), end = element<Offset>(offsets, offset + i + 1);
    return begin == end ? std::string_view() : std::string_view(bytes + begin, static_cast<std::size_t>(end - begin));
  }
  std::int64_t offset;
  const void* offsets;
  const char* bytes = nullptr;
};

// Layout `vu`: 16 bytes per value, which hold its length and either up to 12 bytes of text or a position in a buffer.
struct ViewTexts {
  explicit ViewTexts(const ColumnChunk& p) : column_chunk(p), views(static_cast<const char*>(p.buffer(1))) {
    n_data = p.array->n_buffers - 3;
    if (n_data < 0) malformed("a buffer is missing");
    if (n_data > 0) sizes = p.buffer(p.array->n_buffers - 1);
  }
  std::string_view operator[](std::int64_t i) const {
    const char* view = views + 16 * (column_chunk.offset + i);
    const auto length = element<std::int32_t>(view, 0);
    if (length < 0) malformed("a string length is negative");
    if (length <= 12) return {view + 4, static_cast<std::size_t>(length)};
    const std::int64_t index = element<std::int32_t>(view, 2), begin = element<std::int32_t>(view, 3);
    if (index < 0 || index >= n_data || begin < 0 || begin + length > element<std::int64_t>(sizes, index))
      malformed("a string view lies outside its buffer");
    return {static_cast<const char*>(column_chunk.buffer(2 + index)) + begin, static_cast<std::size_t>(length)};
  }
  const ColumnChunk& column_chunk;
  const char* views;
  const void* sizes = nullptr;
  std::int64_t n_data = 0;
};

// Writes the code of each value of the chunk, -1 for null.
template <class Texts>
void code_texts(const ColumnChunk& column_chunk, const Texts& texts, TextIndex& index, std::int32_t* codes) {
  for (std::int64_t i = 0; i < column_chunk.length; ++i)
    codes[i] = column_chunk.is_null(i) ? -1 : index.code_of(texts[i]);
}

inline void code_texts(const ColumnChunk& column_chunk, std::string_view format, TextIndex& index,
                       std::int32_t* codes) {
  if (column_chunk.length == 0) return;
  if (format == "u")
    code_texts(column_chunk, OffsetTexts<std::int32_t>(column_chunk), index, codes);
  else if (format == "U")
    code_texts(column_chunk, OffsetTexts<std::int64_t>(column_chunk), index, codes);
  else
    code_texts(column_chunk, ViewTexts(column_chunk), index, codes);
}

}  // namespace spinney
