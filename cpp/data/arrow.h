// Tables in the form of an Arrow C stream (https://arrow.apache.org/docs/format/CDataInterface.html).
//
// A stream is a schema and any number of chunks. Each column becomes one of
//   number    an array of one arithmetic type: a view of the producer's memory if it is in one chunk, else a copy;
//             dates are numbers in the unit that `format` specifies
//   boolean   bytes 0 and 1
//   coded     int32 codes into `values`, -1 for missing: strings and dictionaries
//   missing   only nulls
//   refused   a type that no split can use (lists, bytes, durations, …), given by `format`
//
// The producer's memory is trusted to be as long as the interface prescribes; its numbers (lengths, offsets, dictionary
// codes) are checked. Every schema, chunk and stream is released exactly once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "data/column.h"

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
}
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
extern "C" {
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};
}
#endif

namespace spinney {

enum class ArrowKind : std::uint8_t { number, boolean, coded, missing, refused };

using ArrowValues = std::variant<std::vector<std::string>, std::vector<double>, std::vector<std::int64_t>,
                                 std::vector<std::uint64_t>, std::vector<bool>>;

struct ArrowColumn {
  std::string name;
  std::string format;  // of the values, if the column is a dictionary
  ArrowKind kind = ArrowKind::refused;
  bool ordered = false;               // the dictionary declares an order
  DType dtype = DType::f64;           // number: of `data`; boolean: u8; coded: i32
  const std::byte* data = nullptr;    // one value per row
  std::vector<std::byte> storage;     // the memory of `data`, if it is not a view
  std::shared_ptr<const void> owner;  // keeps the producer's chunk alive, if `data` is a view
  std::vector<std::uint8_t> missing;  // one byte per row, non-zero: missing; empty: no missing values
  ArrowValues values;                 // coded: the values of the codes; they may repeat and need not occur
};

struct ArrowTable {
  std::int64_t n_rows = 0;
  bool has_columns = true;  // false: the stream is a single array, not a table
  std::vector<ArrowColumn> columns;
};

// Both take ownership of their arguments, even if they throw: std::invalid_argument for invalid data,
// std::runtime_error for an error of the producer.
ArrowTable read_arrow_stream(ArrowArrayStream* stream);
ArrowTable read_arrow_array(ArrowSchema* schema, ArrowArray* array);

}  // namespace spinney
