// Tables that come as an Arrow C stream (https://arrow.apache.org/docs/format/CDataInterface.html).
//
// A stream is a schema and any number of chunks. Each column of it becomes one of
//   number    a run of one arithmetic type: a view of the producer's memory if it lies in one chunk, else a copy; dates
//             are numbers whose unit `format` tells
//   boolean   bytes 0 and 1
//   coded     int32 codes into `values`, -1 for missing: strings and dictionaries
//   missing   nothing but nulls
//   refused   a type that no split could use (lists, bytes, durations, …); `format` says which
//
// The producer's memory is trusted to be as long as the interface prescribes; what it says in numbers
// (lengths, offsets, dictionary codes) is checked. Every schema, chunk and stream is released exactly once.
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
  const std::byte* data = nullptr;    // one value a row
  std::vector<std::byte> storage;     // what `data` points to, if it is not a view
  std::shared_ptr<const void> owner;  // keeps the producer's chunk alive, if it is
  std::vector<std::uint8_t> missing;  // one byte a row, not 0: missing; empty: no row is
  ArrowValues values;                 // coded: what the codes stand for; values may repeat and need not occur
};

struct ArrowTable {
  std::int64_t n_rows = 0;
  bool has_columns = true;  // false: the stream is one array, not a table
  std::vector<ArrowColumn> columns;
};

// Both take over what they are given, also if they throw: std::invalid_argument for data that cannot be
// right, std::runtime_error for an error of the producer.
ArrowTable read_arrow_stream(ArrowArrayStream* stream);
ArrowTable read_arrow_array(ArrowSchema* schema, ArrowArray* array);

}  // namespace spinney
