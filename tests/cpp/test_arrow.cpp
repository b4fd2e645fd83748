// Hand-made Arrow streams: every layout, every refusal, and every release counted.
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"
#include "data/arrow.h"

using namespace spinney;

namespace {

int n_live = 0;  // structs that were handed out and not released

// Memory that outlives every test, so that a use after release shows in the counts.
template <class T>
const void* keep(std::vector<T> values) {
  static std::deque<std::vector<T>> store;
  store.push_back(std::move(values));
  return store.back().data();
}

template <class T>
void own(T* node) {
  node->release = [](T* self) {
    if constexpr (requires { self->children; })
      for (std::int64_t i = 0; i < self->n_children; ++i) {
        if (self->children[i]->release) self->children[i]->release(self->children[i]);
        delete self->children[i];
      }
    if constexpr (requires { self->dictionary; })
      if (self->dictionary) {
        if (self->dictionary->release) self->dictionary->release(self->dictionary);
        delete self->dictionary;
      }
    if constexpr (requires { self->children; }) delete[] self->children;
    if constexpr (requires { self->buffers; }) delete[] self->buffers;
    self->release = nullptr;
    --n_live;
  };
  ++n_live;
}

template <class T>
void adopt(T& parent, std::vector<T> children) {
  parent.n_children = static_cast<std::int64_t>(children.size());
  parent.children = new T*[children.size()];
  for (std::size_t i = 0; i < children.size(); ++i) parent.children[i] = new T(children[i]);
}

ArrowSchema schema(const char* format, const char* name = "c") {
  ArrowSchema s{};
  s.format = format;
  s.name = name;
  own(&s);
  return s;
}

ArrowSchema table_schema(std::vector<ArrowSchema> columns) {
  ArrowSchema s = schema("+s", "");
  adopt(s, std::move(columns));
  return s;
}

ArrowSchema dictionary_schema(const char* codes, const char* values, std::int64_t flags = 0) {
  ArrowSchema s = schema(codes);
  s.flags = flags;
  s.dictionary = new ArrowSchema(schema(values));
  return s;
}

ArrowArray array(std::int64_t length, std::vector<const void*> buffers, std::int64_t offset = 0) {
  ArrowArray a{};
  a.length = length;
  a.offset = offset;
  a.null_count = !buffers.empty() && buffers[0] ? -1 : 0;
  a.n_buffers = static_cast<std::int64_t>(buffers.size());
  a.buffers = new const void*[buffers.size()];
  std::copy(buffers.begin(), buffers.end(), a.buffers);
  own(&a);
  return a;
}

ArrowArray with_dictionary(ArrowArray codes, ArrowArray values) {
  codes.dictionary = new ArrowArray(values);
  return codes;
}

ArrowArray chunk(std::int64_t length, std::vector<ArrowArray> columns, std::int64_t offset = 0) {
  ArrowArray a = array(length, {nullptr}, offset);
  adopt(a, std::move(columns));
  return a;
}

const void* bits(std::vector<std::uint8_t> bytes) { return keep(std::move(bytes)); }

ArrowArray texts(std::vector<std::string> values, const void* validity = nullptr) {
  std::vector<std::int32_t> offsets = {0};
  std::string all;
  for (const auto& value : values) all += value, offsets.push_back(static_cast<std::int32_t>(all.size()));
  return array(static_cast<std::int64_t>(values.size()),
               {validity, keep(offsets), keep(std::vector<char>(all.begin(), all.end()))});
}

// The contents of a stream: the schema, the chunks, then the end or an error.
struct Producer {
  ArrowSchema schema;
  std::vector<ArrowArray> chunks;
  std::size_t next = 0;
  int schema_error = 0, end_error = 0;
};

ArrowArrayStream stream(Producer& producer) {
  ArrowArrayStream s{};
  s.private_data = &producer;
  s.get_schema = [](ArrowArrayStream* self, ArrowSchema* out) {
    auto& p = *static_cast<Producer*>(self->private_data);
    if (p.schema_error) return p.schema_error;
    *out = p.schema;
    p.schema.release = nullptr;
    return 0;
  };
  s.get_next = [](ArrowArrayStream* self, ArrowArray* out) {
    auto& p = *static_cast<Producer*>(self->private_data);
    if (p.next < p.chunks.size()) {
      *out = p.chunks[p.next];
      p.chunks[p.next++].release = nullptr;
      return 0;
    }
    if (p.end_error)
      std::memset(static_cast<void*>(out), 0x5a, sizeof *out);  // garbage that must not be released
    else
      out->release = nullptr;
    return p.end_error;
  };
  s.get_last_error = [](ArrowArrayStream*) -> const char* { return "the disk is on fire"; };
  s.release = [](ArrowArrayStream* self) {
    auto& p = *static_cast<Producer*>(self->private_data);
    if (p.schema.release) p.schema.release(&p.schema);
    for (auto& c : p.chunks)
      if (c.release) c.release(&c);
    self->release = nullptr;
    --n_live;
  };
  ++n_live;
  return s;
}

ArrowTable read(ArrowSchema schema, std::vector<ArrowArray> chunks) {
  Producer producer{schema, std::move(chunks)};
  ArrowArrayStream s = stream(producer);
  ArrowTable table = read_arrow_stream(&s);
  CHECK(s.release == nullptr);  // moved: the capsule must not release it again
  return table;
}

ArrowColumn read_one(ArrowSchema schema, std::vector<ArrowArray> columns) {
  std::vector<ArrowArray> chunks;
  for (auto& column : columns) chunks.push_back(chunk(column.length, {column}));
  return std::move(read(table_schema({schema}), std::move(chunks)).columns.at(0));
}

template <class T>
std::vector<T> values(const ArrowColumn& column, std::size_t n) {
  std::vector<T> out(n);
  if (n) std::memcpy(out.data(), column.data, n * sizeof(T));
  return out;
}

template <class T>
std::vector<T> dictionary(const ArrowColumn& column) {
  return std::get<std::vector<T>>(column.values);
}

using Ints = std::vector<std::int32_t>;
using Bytes = std::vector<std::uint8_t>;
using Texts = std::vector<std::string>;

void check_malformed(const std::function<void()>& attempt) {
  CHECK_THROWS(attempt(), std::invalid_argument);
  CHECK_EQ(n_live, 0);
}

}  // namespace

TEST(one_chunk_of_numbers_is_a_view_that_keeps_its_chunk) {
  const void* memory = keep<std::int64_t>({1, 2, 3});
  {
    const ArrowColumn column = read_one(schema("l", "age"), {array(3, {nullptr, memory})});
    CHECK(column.kind == ArrowKind::number && column.dtype == DType::i64);
    CHECK_EQ(column.name, "age");
    CHECK(column.data == memory);
    CHECK(column.storage.empty() && column.missing.empty());
    CHECK_EQ(n_live, 2);  // the chunk and its column; the stream and the schemas are gone
  }
  CHECK_EQ(n_live, 0);
}

TEST(every_arithmetic_type_is_known) {
  const void* memory = keep<std::uint8_t>(Bytes(16, 0));
  const std::vector<std::pair<const char*, DType>> types = {
      {"c", DType::i8},  {"C", DType::u8},  {"s", DType::i16}, {"S", DType::u16}, {"i", DType::i32},
      {"I", DType::u32}, {"l", DType::i64}, {"L", DType::u64}, {"f", DType::f32}, {"g", DType::f64}};
  for (const auto& [format, type] : types) {
    const ArrowColumn column = read_one(schema(format), {array(1, {nullptr, memory})});
    CHECK(column.kind == ArrowKind::number && column.dtype == type);
  }
  CHECK_EQ(n_live, 0);
}

TEST(offsets_of_table_and_column_add_up) {
  ArrowArray column = array(5, {bits({0b01101111}), keep<float>({0, 1, 2, 3, 4, 5, 6})}, 2);  // values 2 … 6
  const ArrowTable table = read(table_schema({schema("f")}), {chunk(3, {column}, 1)});        // values 3 … 5
  CHECK(values<float>(table.columns[0], 3) == (std::vector<float>{3, 4, 5}));
  CHECK(table.columns[0].missing == (Bytes{0, 1, 0}));
}

TEST(chunks_are_joined_and_empty_ones_skipped) {
  const ArrowColumn column =
      read_one(schema("s"), {array(2, {nullptr, keep<std::int16_t>({1, 2})}), array(0, {nullptr, nullptr}),
                             array(2, {bits({0b10}), keep<std::int16_t>({3, 4})})});
  CHECK(values<std::int16_t>(column, 4) == (std::vector<std::int16_t>{1, 2, 3, 4}));
  CHECK(column.missing == (Bytes{0, 0, 1, 0}));
  CHECK_EQ(n_live, 0);  // nothing points into the chunks any more
}

TEST(a_bitmap_without_nulls_leaves_no_mask) {
  CHECK(read_one(schema("c"), {array(2, {bits({0b11}), keep<std::int8_t>({1, 2})})}).missing.empty());
}

TEST(numbers_that_are_not_aligned_are_copied) {
  const auto* memory = static_cast<const std::byte*>(keep<double>({0, 0, 0}));
  auto* shifted = const_cast<std::byte*>(memory) + 1;
  const double two[] = {1.5, 2.5};
  std::memcpy(shifted, two, sizeof two);
  const ArrowColumn column = read_one(schema("g"), {array(2, {nullptr, shifted})});
  CHECK(!column.storage.empty());
  CHECK(values<double>(column, 2) == (std::vector<double>{1.5, 2.5}));
}

TEST(booleans_are_unpacked) {
  const ArrowColumn column = read_one(schema("b"), {array(9, {bits({0xff, 0x05}), bits({0b10100110, 0b111})}, 1)});
  CHECK(column.kind == ArrowKind::boolean);
  CHECK(values<std::uint8_t>(column, 9) == (Bytes{1, 1, 0, 0, 1, 0, 1, 1, 0}));
  CHECK(column.missing == (Bytes{0, 0, 0, 0, 0, 0, 0, 0, 1}));
}

TEST(half_floats_become_floats) {
  const auto halves = keep<std::uint16_t>({0x3c00, 0xc000, 0x7c00, 0x0001, 0x8000, 0x7bff, 0x7e00});
  const auto got = values<float>(read_one(schema("e"), {array(7, {nullptr, halves})}), 7);
  CHECK(got[0] == 1 && got[1] == -2 && got[2] == std::numeric_limits<float>::infinity());
  CHECK(got[3] == std::ldexp(1.f, -24) && got[4] == 0 && std::signbit(got[4]) && got[5] == 65504);
  CHECK(std::isnan(got[6]));
}

TEST(decimals_become_the_nearest_double) {
  const auto wide = keep<std::int64_t>({125, 0, -125, -1, 0, 1});  // low and high words; the last is 2^64
  const auto got = values<double>(read_one(schema("d:38,2"), {array(3, {nullptr, wide})}), 3);
  CHECK(got == (std::vector<double>{1.25, -1.25, 184467440737095516.16}));
  const auto narrow = keep<std::int32_t>({7, -7});
  CHECK(values<double>(read_one(schema("d:9,1,32"), {array(2, {nullptr, narrow})}), 2) ==
        (std::vector<double>{.7, -.7}));
  const auto middle = keep<std::int64_t>({9007199254740993, std::numeric_limits<std::int64_t>::min()});
  CHECK(values<double>(read_one(schema("d:18,3,64"), {array(2, {nullptr, middle})}), 2) ==
        (std::vector<double>{9007199254740.993, -9223372036854775.808}));
  const auto lowest = keep<std::uint64_t>({0, std::uint64_t{1} << 63});  // -2^127
  CHECK(values<double>(read_one(schema("d:38,-3"), {array(1, {nullptr, lowest})}), 1)[0] ==
        -170141183460469231731687303715884105728e3);
  const auto five = keep<std::int64_t>({5});
  for (const int scale : {-3, 0, 22, 23, 29, 250}) {
    const std::string format = "d:18," + std::to_string(scale) + ",64";
    const double nearest = std::strtod(("5e" + std::to_string(-scale)).c_str(), nullptr);
    CHECK_EQ(values<double>(read_one(schema(format.c_str()), {array(1, {nullptr, five})}), 1)[0], nearest);
  }
  CHECK(read_one(schema("d:76,2,256"), {array(1, {nullptr, wide})}).kind == ArrowKind::refused);
  CHECK(read_one(schema("d:38,-251"), {array(1, {nullptr, wide})}).kind == ArrowKind::refused);
  CHECK(read_one(schema("d:x"), {array(1, {nullptr, wide})}).kind == ArrowKind::refused);
}

TEST(strings_get_codes_in_order_of_appearance) {
  const ArrowColumn column = read_one(schema("u"), {texts({"b", "", "a", "b"}), texts({"a", "x", "c"}, bits({0b101}))});
  CHECK(column.kind == ArrowKind::coded);
  CHECK(values<std::int32_t>(column, 7) == (Ints{0, 1, 2, 0, 2, -1, 3}));
  CHECK(dictionary<std::string>(column) == (Texts{"b", "", "a", "c"}));
  CHECK_EQ(n_live, 0);
}

TEST(large_strings_start_at_their_offset) {
  const ArrowColumn column =
      read_one(schema("U"),
               {array(2, {nullptr, keep<std::int64_t>({0, 1, 3, 6}), keep<char>({'a', 'b', 'c', 'd', 'e', 'f'})}, 1)});
  CHECK(dictionary<std::string>(column) == (Texts{"bc", "def"}));
}

TEST(many_strings_outgrow_the_first_table) {
  Texts names;
  Ints codes;
  for (int i = 0; i < 5000; ++i) names.push_back(std::to_string(i)), codes.push_back(i);
  const ArrowColumn column = read_one(schema("u"), {texts(names), texts(names)});
  CHECK(dictionary<std::string>(column) == names);
  codes.insert(codes.end(), codes.begin(), codes.begin() + 5000);
  CHECK(values<std::int32_t>(column, 10000) == codes);
}

static std::vector<char> string_views(std::vector<std::array<std::int32_t, 4>> views) {
  std::vector<char> bytes(16 * views.size());
  std::memcpy(bytes.data(), views.data(), bytes.size());
  return bytes;
}

TEST(string_views_are_short_or_point_into_a_buffer) {
  const std::string pool = "....a string of more than twelve bytes";
  auto views = string_views({{2, 0, 0, 0}, {34, 0, 0, 4}, {12, 0, 0, 0}, {0, 0, 0, 0}});
  std::memcpy(views.data() + 4, "ab", 2);
  std::memcpy(views.data() + 36, "twelve bytes", 12);
  const auto data = keep(std::vector<char>(pool.begin(), pool.end()));
  const auto sizes = keep<std::int64_t>({static_cast<std::int64_t>(pool.size())});
  const ArrowColumn column = read_one(schema("vu"), {array(4, {nullptr, keep(views), data, sizes})});
  CHECK(dictionary<std::string>(column) == (Texts{"ab", pool.substr(4), "twelve bytes", ""}));
  CHECK(dictionary<std::string>(read_one(schema("vu"), {array(1, {nullptr, keep(views), nullptr})})) == Texts{"ab"});
}

template <class Code>
static void check_codes(const char* format) {
  const ArrowColumn column =
      read_one(dictionary_schema(format, "u"),
               {with_dictionary(array(3, {bits({0b1101}), keep<Code>({0, 1, 1, 0})}, 1), texts({"x", "y"}))});
  CHECK(values<std::int32_t>(column, 3) == (Ints{-1, 1, 0}));
  CHECK(dictionary<std::string>(column) == (Texts{"x", "y"}));
}

TEST(dictionary_codes_have_any_width) {
  check_codes<std::int8_t>("c"), check_codes<std::uint8_t>("C");
  check_codes<std::int16_t>("s"), check_codes<std::uint16_t>("S");
  check_codes<std::int32_t>("i"), check_codes<std::uint32_t>("I");
  check_codes<std::int64_t>("l"), check_codes<std::uint64_t>("L");
  CHECK_EQ(n_live, 0);
}

TEST(dictionaries_may_differ_from_chunk_to_chunk) {
  const auto codes = [] { return array(2, {nullptr, keep<std::int8_t>({0, 1})}); };
  const ArrowColumn column = read_one(dictionary_schema("c", "u"), {with_dictionary(codes(), texts({"x", "y"})),
                                                                    with_dictionary(codes(), texts({"y", "z"}))});
  CHECK(values<std::int32_t>(column, 4) == (Ints{0, 1, 1, 2}));
  CHECK(dictionary<std::string>(column) == (Texts{"x", "y", "z"}));
}

TEST(dictionaries_of_numbers_and_nulls) {
  const auto codes = [] { return array(3, {nullptr, keep<std::int8_t>({1, 0, 1})}); };
  const auto read_values = [&](const char* format, std::vector<const void*> buffers) {
    return read_one(dictionary_schema("c", format),
                    {with_dictionary(codes(), array(2, buffers)), with_dictionary(codes(), array(2, buffers))});
  };
  const ArrowColumn ints = read_values("i", {bits({0b10}), keep<std::int32_t>({5, 6})});
  CHECK(dictionary<std::int64_t>(ints) == (std::vector<std::int64_t>{5, 6, 5, 6}));
  CHECK(values<std::int32_t>(ints, 6) == (Ints{1, -1, 1, 3, -1, 3}));
  CHECK(dictionary<double>(read_values("f", {nullptr, keep<float>({.5f, 2})})).at(0) == .5);
  CHECK(dictionary<std::uint64_t>(read_values("L", {nullptr, keep<std::uint64_t>({1, 2})})).at(1) == 2);
  CHECK(dictionary<bool>(read_values("b", {nullptr, bits({0b01})})) == (std::vector<bool>{true, false, true, false}));
  CHECK(values<std::int32_t>(read_values("n", {}), 3) == (Ints{-1, -1, -1}));
  CHECK(values<std::int32_t>(
            read_one(dictionary_schema("c", "u"), {with_dictionary(codes(), texts({"x", "y"}, bits({0b01})))}), 3) ==
        (Ints{-1, 0, -1}));
}

TEST(only_a_declared_order_is_an_order) {
  const auto read_flags = [](std::int64_t flags, const char* metadata) {
    ArrowSchema s = dictionary_schema("c", "u", flags);
    s.metadata = metadata;
    return read_one(s, {with_dictionary(array(1, {nullptr, keep<std::int8_t>({0})}), texts({"x"}))}).ordered;
  };
  const auto pair = [](std::string key) {
    std::string text(8, '\0');
    const std::int32_t counts[] = {1, static_cast<std::int32_t>(key.size())};
    std::memcpy(text.data(), counts, 8);
    return text + key + std::string(4, '\0');
  };
  CHECK(read_flags(ARROW_FLAG_DICTIONARY_ORDERED, nullptr));
  CHECK(read_flags(ARROW_FLAG_DICTIONARY_ORDERED, pair("unit").c_str()));
  CHECK(!read_flags(ARROW_FLAG_NULLABLE, nullptr));
  CHECK(!read_flags(ARROW_FLAG_DICTIONARY_ORDERED, pair("_PL_ENUM_VALUES2").c_str()));
}

TEST(null_columns_and_columns_without_chunks_are_missing) {
  CHECK(read_one(schema("n"), {array(3, {})}).kind == ArrowKind::missing);
  const ArrowTable none = read(table_schema({schema("u"), dictionary_schema("c", "u")}), {});
  CHECK_EQ(none.n_rows, 0);
  CHECK(none.columns[0].kind == ArrowKind::missing && none.columns[1].kind == ArrowKind::coded);
  CHECK_EQ(n_live, 0);
}

TEST(dates_are_numbers_in_the_unit_of_their_format) {
  CHECK(values<std::int32_t>(read_one(schema("tdD"), {array(2, {nullptr, keep<std::int32_t>({-1, 19000})})}), 2) ==
        (std::vector<std::int32_t>{-1, 19000}));
  for (const char* format : {"tdm", "tss:", "tsm:", "tsu:UTC", "tsn:Europe/Berlin"}) {
    const ArrowColumn column = read_one(schema(format), {array(1, {nullptr, keep<std::int64_t>({-7})})});
    CHECK(column.kind == ArrowKind::number);
    CHECK_EQ(column.format, format);
    CHECK(values<std::int64_t>(column, 1) == std::vector<std::int64_t>{-7});
  }
}

TEST(types_that_no_split_can_use_are_refused) {
  for (const char* format : {"td", "ts", "tsx:", "ttm", "tDs", "tiM", "z", "Z", "vz", "w:4", "+l", "+r", "??", ""}) {
    const ArrowColumn column = read_one(schema(format), {array(1, {nullptr, keep<std::int64_t>({1, 2})})});
    CHECK(column.kind == ArrowKind::refused);
    CHECK_EQ(column.format, format);
  }
  const ArrowColumn dates = read_one(
      dictionary_schema("c", "tdD"),
      {with_dictionary(array(1, {nullptr, keep<std::int8_t>({0})}), array(1, {nullptr, keep<std::int32_t>({0})}))});
  CHECK(dates.kind == ArrowKind::refused);
  CHECK_EQ(dates.format, "tdD");
}

TEST(rows_that_are_null_in_the_table_are_missing_in_every_column) {
  ArrowArray rows = chunk(2, {array(3, {nullptr, keep<double>({1, 2, 3})})}, 1);
  rows.null_count = -1;
  rows.buffers[0] = bits({0b101});
  CHECK(read(table_schema({schema("g")}), {rows}).columns[0].missing == (Bytes{1, 0}));
}

TEST(an_array_alone_is_no_table) {
  CHECK(!read(schema("l"), {array(1, {nullptr, keep<std::int64_t>({1})})}).has_columns);
  ArrowSchema s = table_schema({schema("l")});
  ArrowArray a = chunk(1, {array(1, {nullptr, keep<std::int64_t>({1})})});
  CHECK(read_arrow_array(&s, &a).has_columns);
  CHECK(s.release == nullptr && a.release == nullptr);
  CHECK_EQ(n_live, 0);
  CHECK_THROWS(read_arrow_array(&s, &a), std::invalid_argument);
}

TEST(errors_of_the_producer_are_reported_and_nothing_leaks) {
  for (const bool at_schema : {true, false}) {
    Producer producer{table_schema({schema("l")}), {chunk(1, {array(1, {nullptr, keep<std::int64_t>({1})})})}};
    (at_schema ? producer.schema_error : producer.end_error) = 5;
    ArrowArrayStream s = stream(producer);
    bool reported = false;
    try {
      read_arrow_stream(&s);
    } catch (const std::runtime_error& error) {
      reported = std::string(error.what()).find("the disk is on fire") != std::string::npos;
    }
    CHECK(reported);
    CHECK_EQ(n_live, 0);
    CHECK_THROWS(read_arrow_stream(&s), std::invalid_argument);  // it has been read
  }
}

TEST(malformed_extents_are_refused) {
  constexpr auto huge = std::numeric_limits<std::int64_t>::max();
  const auto number = [](std::int64_t length, std::int64_t offset) {
    return array(length, {nullptr, keep<std::int64_t>({1, 2})}, offset);
  };
  check_malformed([&] { read(table_schema({schema("l")}), {chunk(2, {number(1, 0)})}); });
  check_malformed([&] { read(table_schema({schema("l")}), {chunk(1, {number(2, 0)}, 2)}); });
  check_malformed([&] { read(table_schema({schema("l")}), {chunk(1, {number(huge, huge)})}); });
  check_malformed([&] { read(table_schema({schema("l")}), {chunk(-1, {number(1, 0)})}); });
  check_malformed([&] { read(table_schema({schema("l")}), {chunk(1, {number(1, -1)})}); });
  check_malformed([&] { read(table_schema({schema("l")}), {chunk(huge, {number(huge, 0)}, huge)}); });
  check_malformed([&] { read(table_schema({schema("l"), schema("l")}), {chunk(1, {number(1, 0)})}); });
  const std::int64_t most = std::int64_t{1} << 32;
  check_malformed([&] { read(table_schema({schema("n")}), {chunk(most, {array(most, {})})}); });
}

TEST(malformed_buffers_are_refused) {
  check_malformed([] { read_one(schema("l"), {array(1, {nullptr, nullptr})}); });
  check_malformed([] { read_one(schema("l"), {array(1, {nullptr})}); });
  check_malformed([] { read_one(schema("b"), {array(1, {nullptr, nullptr})}); });
  check_malformed([] { read_one(schema("u"), {array(1, {nullptr, keep<std::int32_t>({0, 1})})}); });
  check_malformed([] { read_one(schema("u"), {array(1, {nullptr, keep<std::int32_t>({0, 1}), nullptr})}); });
  check_malformed([] { read_one(schema("u"), {array(1, {nullptr, keep<std::int32_t>({3, 1}), keep<char>({'a'})})}); });
  const auto one_past_all = keep<std::int32_t>({0, 5000, 1});
  check_malformed([&] { read_one(schema("u"), {array(2, {nullptr, one_past_all, keep<char>({'a'})})}); });
  check_malformed([] { read_one(schema("vu"), {array(1, {nullptr, keep(string_views({{1, 0, 0, 0}}))})}); });
  for (const std::array<std::int32_t, 4> view :
       {std::array{-1, 0, 0, 0}, {13, 0, 1, 0}, {13, 0, -1, 0}, {13, 0, 0, 8}, {13, 0, 0, -1}})
    check_malformed([&] {
      read_one(schema("vu"), {array(1, {nullptr, keep(string_views({view})), keep(std::vector<char>(20, 'a')),
                                        keep<std::int64_t>({20})})});
    });
}

TEST(malformed_dictionaries_are_refused) {
  const auto codes = [](std::int8_t code) { return array(1, {nullptr, keep<std::int8_t>({code})}); };
  check_malformed([&] { read_one(dictionary_schema("c", "u"), {with_dictionary(codes(1), texts({"x"}))}); });
  check_malformed([&] { read_one(dictionary_schema("c", "u"), {with_dictionary(codes(-1), texts({"x"}))}); });
  check_malformed([&] { read_one(dictionary_schema("c", "u"), {codes(0)}); });
  check_malformed([&] {
    read_one(dictionary_schema("g", "u"), {with_dictionary(array(1, {nullptr, keep<double>({0})}), texts({"x"}))});
  });
}
