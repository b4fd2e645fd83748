#include "data/arrow.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "data/arrow_chunks.h"
#include "data/arrow_numbers.h"
#include "data/arrow_text.h"

namespace spinney {

namespace {

struct ColumnSource {
  const ArrowSchema* schema;
  std::vector<ColumnChunk> pieces;  // none is empty
  std::size_t n_rows;
};

// Uninitialised values of type T for every row of a column.
template <class T>
T* allot(ArrowColumn& column, std::size_t n_rows) {
  column.storage.resize(n_rows * sizeof(T));
  column.data = column.storage.data();
  return reinterpret_cast<T*>(column.storage.data());
}

void read_missing(const ColumnSource& source, ArrowColumn& column) {
  if (std::none_of(source.pieces.begin(), source.pieces.end(), [](const ColumnChunk& p) { return p.has_nulls(); }))
    return;
  column.missing.assign(source.n_rows, 0);
  bool any = false;
  std::uint8_t* at = column.missing.data();
  for (const ColumnChunk& column_chunk : source.pieces) {
    if (column_chunk.has_nulls())
      for (std::int64_t i = 0; i < column_chunk.length; ++i) any |= (at[i] = column_chunk.is_null(i)) != 0;
    at += column_chunk.length;
  }
  if (!any) column.missing.clear();
}

void read_arithmetic(const ColumnSource& source, DType type, ArrowColumn& column) {
  const std::size_t width = bytes_of(type);
  column.kind = ArrowKind::number;
  column.dtype = type;
  read_missing(source, column);
  if (source.pieces.size() == 1) {
    const ColumnChunk& column_chunk = source.pieces[0];
    const auto* data =
        static_cast<const std::byte*>(column_chunk.buffer(1)) + column_chunk.offset * static_cast<std::int64_t>(width);
    if (reinterpret_cast<std::uintptr_t>(data) % width == 0) {
      column.data = data;
      column.owner = column_chunk.owner;
      return;
    }
  }
  auto* out = allot<std::byte>(column, source.n_rows * width);
  for (const ColumnChunk& column_chunk : source.pieces) {
    const auto n_bytes = static_cast<std::size_t>(column_chunk.length) * width;
    std::memcpy(
        out,
        static_cast<const std::byte*>(column_chunk.buffer(1)) + column_chunk.offset * static_cast<std::int64_t>(width),
        n_bytes);
    out += n_bytes;
  }
}

// Columns that need a new value for each row, which `value(buffer, i)` computes.
template <class T, class Value>
void read_converted(const ColumnSource& source, ArrowColumn& column, Value&& value) {
  read_missing(source, column);
  T* out = allot<T>(column, source.n_rows);
  for (const ColumnChunk& column_chunk : source.pieces) {
    const void* buffer = column_chunk.buffer(1);
    for (std::int64_t i = 0; i < column_chunk.length; ++i)
      *out++ = column_chunk.is_null(i) ? T{} : value(buffer, column_chunk.offset + i);
  }
}

void read_texts(const ColumnSource& source, std::string_view format, ArrowColumn& column) {
  column.kind = ArrowKind::coded;
  column.dtype = DType::i32;
  auto* codes = allot<std::int32_t>(column, source.n_rows);
  TextIndex index;
  for (const ColumnChunk& column_chunk : source.pieces) {
    code_texts(column_chunk, format, index, codes);
    codes += column_chunk.length;
  }
  column.values = index.texts();
}

// Reads a column that is not a dictionary; sets the kind `refused` if no split can use its type.
void read_plain(const ColumnSource& source, std::string_view format, ArrowColumn& column) {
  if (const auto type = arithmetic_type(format)) return read_arithmetic(source, *type, column);
  if (is_text(format)) return read_texts(source, format, column);
  if (format == "n") {
    column.kind = ArrowKind::missing;
  } else if (format == "b") {
    column.kind = ArrowKind::boolean;
    column.dtype = DType::u8;
    read_converted<std::uint8_t>(source, column, bit);
  } else if (format == "e") {
    column.kind = ArrowKind::number;
    column.dtype = DType::f32;
    read_converted<float>(source, column, [](const void* buffer, std::int64_t i) {
      return half_to_float(element<std::uint16_t>(buffer, i));
    });
  } else if (const auto decimal = Decimal::parse(format)) {
    column.kind = ArrowKind::number;
    read_converted<double>(source, column,
                           [&](const void* buffer, std::int64_t i) { return decimal->value(buffer, i); });
  }
}

// ---- dictionaries ---------------------------------------------------------------------------------------

template <class Code>
void translate(const ColumnChunk& column_chunk, const std::vector<std::int32_t>& new_code, std::int32_t* codes) {
  const void* buffer = column_chunk.buffer(1);
  for (std::int64_t i = 0; i < column_chunk.length; ++i) {
    if (column_chunk.is_null(i)) {
      codes[i] = -1;
      continue;
    }
    const auto code =
        static_cast<std::uint64_t>(element<Code>(buffer, column_chunk.offset + i));  // negative codes become huge
    if (code >= new_code.size()) malformed("a code lies outside its dictionary");
    codes[i] = new_code[code];
  }
}

void translate(const ColumnChunk& column_chunk, DType type, const std::vector<std::int32_t>& new_code,
               std::int32_t* codes) {
  switch (type) {
    case DType::i8:
      return translate<std::int8_t>(column_chunk, new_code, codes);
    case DType::u8:
      return translate<std::uint8_t>(column_chunk, new_code, codes);
    case DType::i16:
      return translate<std::int16_t>(column_chunk, new_code, codes);
    case DType::u16:
      return translate<std::uint16_t>(column_chunk, new_code, codes);
    case DType::i32:
      return translate<std::int32_t>(column_chunk, new_code, codes);
    case DType::u32:
      return translate<std::uint32_t>(column_chunk, new_code, codes);
    case DType::i64:
      return translate<std::int64_t>(column_chunk, new_code, codes);
    case DType::u64:
      return translate<std::uint64_t>(column_chunk, new_code, codes);
    default:
      malformed("dictionary codes are not integers");
  }
}

template <class To, class From>
void append(const ArrowColumn& numbers, std::size_t n, ArrowValues& values) {
  if (!std::holds_alternative<std::vector<To>>(values)) values = std::vector<To>();
  auto& list = std::get<std::vector<To>>(values);
  for (std::size_t i = 0; i < n; ++i)
    list.push_back(static_cast<To>(element<From>(numbers.data, static_cast<std::int64_t>(i))));
}

void append_numbers(const ArrowColumn& numbers, std::size_t n, ArrowValues& values) {
  if (numbers.kind == ArrowKind::boolean) return append<bool, std::uint8_t>(numbers, n, values);
  switch (numbers.dtype) {
    case DType::f32:
      return append<double, float>(numbers, n, values);
    case DType::f64:
      return append<double, double>(numbers, n, values);
    case DType::i8:
      return append<std::int64_t, std::int8_t>(numbers, n, values);
    case DType::i16:
      return append<std::int64_t, std::int16_t>(numbers, n, values);
    case DType::i32:
      return append<std::int64_t, std::int32_t>(numbers, n, values);
    case DType::i64:
      return append<std::int64_t, std::int64_t>(numbers, n, values);
    case DType::u8:
      return append<std::uint64_t, std::uint8_t>(numbers, n, values);
    case DType::u16:
      return append<std::uint64_t, std::uint16_t>(numbers, n, values);
    case DType::u32:
      return append<std::uint64_t, std::uint32_t>(numbers, n, values);
    case DType::u64:
      return append<std::uint64_t, std::uint64_t>(numbers, n, values);
  }
}

// The merged values of the dictionaries of all chunks, which may differ from chunk to chunk.
class DictionaryValues {
 public:
  explicit DictionaryValues(std::string_view format) : format_(format) {}

  // Adds a dictionary; sets the merged code of each of its values, -1 for null. False: refused.
  bool add(const ArrowArray& dictionary, std::vector<std::int32_t>& new_code) {
    const ColumnChunk column_chunk = whole(dictionary);
    const auto n = static_cast<std::size_t>(column_chunk.length);
    if (n >= std::numeric_limits<std::int32_t>::max() / 2 - n_numbers_) malformed("a dictionary is too long");
    new_code.assign(n, -1);
    if (is_text(format_)) {
      code_texts(column_chunk, format_, index_, new_code.data());
      return true;
    }
    if (n == 0) return true;
    ArrowColumn numbers;
    read_plain({nullptr, {column_chunk}, n}, format_, numbers);
    if (numbers.kind == ArrowKind::missing) return true;
    if (numbers.kind == ArrowKind::refused) return false;
    append_numbers(numbers, n, values_);
    for (std::size_t i = 0; i < n; ++i)
      if (numbers.missing.empty() || !numbers.missing[i]) new_code[i] = static_cast<std::int32_t>(n_numbers_ + i);
    n_numbers_ += n;
    return true;
  }

  ArrowValues take() { return is_text(format_) ? ArrowValues(index_.texts()) : std::move(values_); }

 private:
  std::string_view format_;
  TextIndex index_;
  ArrowValues values_;
  std::size_t n_numbers_ = 0;
};

// Metadata: the number of pairs, then the length and the bytes of each key and each value.
bool has_metadata_key(const char* metadata, std::string_view prefix) {
  if (!metadata) return false;
  const auto n_pairs = element<std::int32_t>(metadata, 0);
  metadata += 4;
  for (std::int32_t pair = 0; pair < n_pairs; ++pair) {
    const auto key_length = element<std::int32_t>(metadata, 0);
    if (key_length < 0) return false;
    if (std::string_view(metadata + 4, static_cast<std::size_t>(key_length)).starts_with(prefix)) return true;
    metadata += 4 + key_length;
    const auto value_length = element<std::int32_t>(metadata, 0);
    if (value_length < 0) return false;
    metadata += 4 + value_length;
  }
  return false;
}

void read_dictionary(const ColumnSource& source, ArrowColumn& column) {
  const ArrowSchema& schema = *source.schema;
  const auto code_type = arithmetic_type(schema.format);
  if (!code_type || *code_type == DType::f32 || *code_type == DType::f64)
    malformed("dictionary codes are not integers");
  column.format = schema.dictionary->format;
  if (schema.dictionary->dictionary) return;  // a dictionary of dictionaries is refused
  if (is_date(column.format)) return;         // dates as categories are refused
  auto* codes = allot<std::int32_t>(column, source.n_rows);
  DictionaryValues values(column.format);
  std::vector<std::int32_t> new_code;
  for (const ColumnChunk& column_chunk : source.pieces) {
    if (!column_chunk.array->dictionary) malformed("a chunk lacks its dictionary");
    if (!values.add(*column_chunk.array->dictionary, new_code)) return;
    translate(column_chunk, *code_type, new_code, codes);
    codes += column_chunk.length;
  }
  column.kind = ArrowKind::coded;
  column.dtype = DType::i32;
  column.values = values.take();
  // polars flags every Enum as ordered, although an Enum is only a closed set of names.
  column.ordered = (schema.flags & ARROW_FLAG_DICTIONARY_ORDERED) && !has_metadata_key(schema.metadata, "_PL_ENUM");
}

ArrowColumn read_column(const ColumnSource& source) {
  if (!source.schema->format) malformed("a column has no format");
  ArrowColumn column;
  column.name = source.schema->name ? source.schema->name : "";
  column.format = source.schema->format;
  if (source.schema->dictionary)
    read_dictionary(source, column);
  else if (source.pieces.empty())
    column.kind = ArrowKind::missing;
  else
    read_plain(source, source.schema->format, column);
  return column;
}

ArrowTable read_chunks(const ArrowSchema& schema, const std::vector<Chunk>& chunks) {
  if (!schema.format) malformed("the schema has no format");
  ArrowTable table;
  table.has_columns = std::string_view(schema.format) == "+s";
  for (const Chunk& chunk : chunks) {
    check_extent(*chunk->get());
    table.n_rows += (*chunk)->length;
    if (table.n_rows >= std::numeric_limits<std::uint32_t>::max())
      throw std::invalid_argument("A table may have at most 4294967294 rows.");
  }
  const auto n_rows = static_cast<std::size_t>(table.n_rows);
  const std::int64_t n_columns = table.has_columns ? schema.n_children : 1;
  for (std::int64_t j = 0; j < n_columns; ++j) {
    ColumnSource source{table.has_columns ? schema.children[j] : &schema, {}, n_rows};
    for (const Chunk& chunk : chunks) {
      if ((*chunk)->length == 0) continue;
      source.pieces.push_back(table.has_columns ? child_piece(chunk, j) : whole(*chunk->get()));
      source.pieces.back().owner = chunk;
    }
    table.columns.push_back(read_column(source));
  }
  return table;
}

}  // namespace

ArrowTable read_arrow_stream(ArrowArrayStream* source) {
  Owned<ArrowArrayStream> stream(source);
  if (!stream->release) throw std::invalid_argument("The Arrow stream has been read before.");
  const auto require = [&](int code) {
    if (code == 0) return;
    const char* reason = stream->get_last_error(stream.get());
    throw std::runtime_error("The Arrow stream failed: " + std::string(reason ? reason : "no reason was given"));
  };
  ArrowSchema first{};  // owned only after success: after an error its content is undefined
  require(stream->get_schema(stream.get(), &first));
  const Owned<ArrowSchema> schema(&first);
  std::vector<Chunk> chunks;
  while (true) {
    ArrowArray next{};
    require(stream->get_next(stream.get(), &next));
    auto chunk = std::make_shared<Owned<ArrowArray>>(&next);
    if (!(*chunk)->release) break;
    chunks.push_back(std::move(chunk));
  }
  return read_chunks(*schema.get(), chunks);
}

ArrowTable read_arrow_array(ArrowSchema* schema, ArrowArray* array) {
  const Owned<ArrowSchema> held_schema(schema);
  auto chunk = std::make_shared<Owned<ArrowArray>>(array);
  if (!held_schema->release || !(*chunk)->release) throw std::invalid_argument("The Arrow array has been read before.");
  return read_chunks(*held_schema.get(), {std::move(chunk)});
}

}  // namespace spinney
