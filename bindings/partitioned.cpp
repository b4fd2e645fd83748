// Distributed gradient boosting on partitioned rows.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "arrays.h"
#include "boosting_handles.h"
#include "growth_options.h"
#include "interrupt.h"
#include "learn/partition.h"
#include "learn/partitioned_boosting.h"
#include "module.h"
#include "table.h"
#include "tree_handle.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace spinney {

namespace {

// The bins of a column as Python stores and sends them: is it a category column, has it missing values, number of
// codes, edges.
using PlainCoding = std::vector<std::tuple<bool, bool, std::uint32_t, std::vector<double>>>;

PlainCoding plain(const Coding& coding) {
  PlainCoding found;
  for (const CodedColumn& c : coding.columns) found.emplace_back(c.is_category, c.has_missing, c.n_codes, c.edges);
  return found;
}

Coding read_coding(const PlainCoding& given) {
  Coding coding;
  for (const auto& [is_category, has_missing, n_codes, edges] : given) {
    if (n_codes < 1 || n_codes > 65536 || (!is_category && n_codes != edges.size() + 1 + has_missing))
      throw nb::value_error("The coding is invalid.");
    coding.columns.push_back({is_category, has_missing, n_codes > 256, n_codes, edges});
  }
  return coding;
}

auto rows_for_bins(std::size_t n_rows, const std::optional<Doubles1>& weight) {
  if (weight && weight->shape(0) != n_rows) throw nb::value_error("weight must have one number for each row.");
  RowsToLearnFrom found =
      run_interruptible([&](Interrupt&) { return RowsToLearnFrom(n_rows, weight ? weight->data() : nullptr); });
  return std::tuple(own(std::move(found.rows)), own(std::move(found.weights)));
}

PlainCoding learn_coding(const TableHandle& sample, const std::optional<Doubles1>& weight,
                         const std::vector<std::uint8_t>& missing, const BoostingOptions& options) {
  const Table& table = sample.table;
  if (missing.size() != table.n_columns() || (weight && weight->shape(0) != table.n_rows))
    throw nb::value_error("missing must have one entry per column, weight one per row.");
  const double* weights = weight ? weight->data() : nullptr;
  const BoostingParams& params = options.params;
  return run_interruptible([&](Interrupt& interrupt) {
    return plain(Coding::learn(table, rows_of_weight(table.n_rows, nullptr), weights, missing, params.max_bins,
                               params.tree.n_threads, interrupt));
  });
}

// Coded rows that several partitions may use; their tables may be freed.
struct CodedRows {
  Table rows;  // no columns
  std::shared_ptr<const CodedTable> coded;
};
struct CodedRowsHandle {
  std::shared_ptr<CodedRows> shared;
};

void code_rows(CodedRowsHandle* self, const std::vector<TableHandle*>& given, const PlainCoding& coding,
               const BoostingOptions& options) {
  new (self) CodedRowsHandle{std::make_shared<CodedRows>()};
  if (given.empty()) throw nb::value_error("tables must not be empty.");
  Coding known = read_coding(coding);
  Table& rows = self->shared->rows;
  std::vector<const Table*> tables;
  for (const TableHandle* one : given) {
    if (known.columns.size() != one->table.n_columns())
      throw nb::value_error("table and coding have different columns.");
    tables.push_back(&one->table);
    rows.n_rows += one->table.n_rows;
  }
  self->shared->coded = run_interruptible([&](Interrupt& interrupt) {
    return std::make_shared<const CodedTable>(tables, rows, std::move(known), options.params.tree.n_threads, interrupt);
  });
}

// A partition with its targets and weights.
struct PartitionHandle {
  std::shared_ptr<CodedRows> coded;
  std::vector<double> target, weight, held_weight;
  std::unique_ptr<Partition> partition;
};

void make_partition(PartitionHandle* self, const CodedRowsHandle& coded, const Doubles2& target,
                    const std::optional<Doubles1>& weight, const std::optional<Doubles1>& held_weight,
                    const Doubles2& scores, const BoostingOptions& options,
                    std::tuple<std::size_t, std::size_t, double, double> place) {
  new (self) PartitionHandle;
  self->coded = coded.shared;
  const Table* table = &self->coded->rows;
  const std::size_t n = table->n_rows;
  const BoostingParams& params = options.params;
  if (target.shape(0) != params.losses.size() || target.shape(1) != n || scores.shape(0) != params.n_scores() ||
      scores.shape(1) != n || (weight && weight->shape(0) != n) || (held_weight && held_weight->shape(0) != n))
    throw nb::value_error("table, target and weight have different numbers of rows.");
  const auto [first_row, n_all_rows, weight_scale, count_by_weight] = place;
  const TablePlace where{first_row, n_all_rows, weight_scale, count_by_weight};
  run_interruptible([&](Interrupt&) {  // copies all rows; the process may answer other requests meanwhile
    self->target.assign(target.data(), target.data() + target.size());
    if (weight) self->weight.assign(weight->data(), weight->data() + n);
    if (held_weight) self->held_weight.assign(held_weight->data(), held_weight->data() + n);
    BoostingRows rows{table, self->target.data(), weight ? self->weight.data() : nullptr, {}}, held_out;
    for (std::size_t k = 0; k < scores.shape(0); ++k)
      rows.scores.emplace_back(scores.data() + k * n, scores.data() + (k + 1) * n);
    if (held_weight) {
      held_out = rows;
      held_out.weight = self->held_weight.data();
    }
    self->partition =
        std::make_unique<Partition>(std::move(rows), std::move(held_out), params, self->coded->coded, where);
  });
}

nb::bytes answer(PartitionHandle& self, nb::bytes request) {
  const std::string_view given(request.c_str(), request.size());
  const std::string found =
      run_interruptible([&](Interrupt& interrupt) { return self.partition->answer(given, interrupt); });
  return nb::bytes(found.data(), found.size());
}

struct PartitionedHandle {
  std::unique_ptr<PartitionedBoosting> boosting;
  std::vector<std::uint32_t> n_categories;
};

void start_partitioned(PartitionedHandle* self, const PlainCoding& coding, std::vector<std::uint32_t> n_categories,
                       std::size_t n_rows, const std::optional<Doubles1>& weight, const BoostingOptions& options,
                       std::uint32_t n_done, double work_of_message) {
  new (self) PartitionedHandle;
  if (weight && weight->shape(0) != n_rows) throw nb::value_error("weight must have one number for each row.");
  if (n_categories.size() != coding.size()) throw nb::value_error("n_categories must have one entry per column.");
  check_columns(options.params, coding.size());
  self->n_categories = std::move(n_categories);
  Coding known = read_coding(coding);
  self->boosting = run_interruptible([&](Interrupt&) {
    return std::make_unique<PartitionedBoosting>(std::move(known), options.params, n_rows,
                                                 weight ? weight->data() : nullptr, n_done, work_of_message);
  });
}

// A view of a Python bytes object.
class BorrowedBytes {
 public:
  explicit BorrowedBytes(nb::handle owner) {
    if (PyObject_GetBuffer(owner.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  BorrowedBytes(BorrowedBytes&& other) noexcept : view_(std::exchange(other.view_, Py_buffer{})) {}
  BorrowedBytes& operator=(BorrowedBytes&&) = delete;
  ~BorrowedBytes() { PyBuffer_Release(&view_); }  // no effect if there is no buffer
  std::string_view bytes() const { return {static_cast<const char*>(view_.buf), static_cast<std::size_t>(view_.len)}; }

 private:
  Py_buffer view_;
};

// A Python object whose `send` takes bytes, and whose `receive` returns a list of bytes.
class PythonChannel final : public Channel {
 public:
  explicit PythonChannel(const nb::object& channel) : send_(channel.attr("send")), receive_(channel.attr("receive")) {}

  void send(const std::string& request) override {
    const nb::gil_scoped_acquire lock;
    send_(nb::bytes(request.data(), request.size()));
  }

  std::vector<std::string_view> receive() override {
    const nb::gil_scoped_acquire lock;
    borrowed_.clear();
    std::vector<std::string_view> answers;
    for (nb::handle answer : receive_()) answers.push_back(borrowed_.emplace_back(answer).bytes());
    return answers;
  }

 private:
  nb::object send_, receive_;
  std::vector<BorrowedBytes> borrowed_;
};

void advance(PartitionedHandle& self, const nb::object& channel) {
  PythonChannel python_channel(channel);  // destroyed with the GIL held
  run_interruptible([&](Interrupt& interrupt) { self.boosting->advance(python_channel, interrupt); });
}

std::vector<TreeHandle*> trees_of(const PartitionedHandle& self, std::size_t first,
                                  const std::vector<double>& factors) {
  std::vector<TreeHandle*> trees;
  for (std::size_t t = first; t < self.boosting->trees().size(); ++t) {
    Tree tree = self.boosting->trees()[t];
    if (!factors.empty())
      for (double& value : tree.value) value *= factors[t % factors.size()];
    trees.push_back(new TreeHandle(std::move(tree), self.n_categories));
  }
  return trees;
}

nb::list history(const PartitionedHandle& self, std::size_t first) {
  nb::list all;
  const std::vector<std::string>& known = self.boosting->history();
  for (std::size_t i = first; i < known.size(); ++i) all.append(nb::bytes(known[i].data(), known[i].size()));
  return all;
}

nb::bytes request_of(const std::string& name) {
  const std::pair<const char*, Request> known[] = {{"gradients", Request::gradients},
                                                   {"held_scores", Request::held_scores},
                                                   {"save_scores", Request::save_scores},
                                                   {"saved_scores", Request::saved_scores}};
  for (const auto& [word, request] : known)
    if (name == word) return nb::bytes(&request, 1);
  throw nb::value_error("Unknown request.");
}

double held_out_loss(const nb::list& answers) {
  std::vector<BorrowedBytes> borrowed;
  std::vector<std::string_view> given;
  for (nb::handle answer : answers) given.push_back(borrowed.emplace_back(answer).bytes());
  return PartitionedBoosting::held_out_loss(given);
}

}  // namespace

}  // namespace spinney

void init_partitioned(nb::module_& m) {
  using namespace spinney;
  m.def("rows_for_bins", &rows_for_bins, "n_rows"_a, "weight"_a.none(),
        "The rows that bin edges are learned from, and their weights; empty: 1.");
  m.def("learn_coding", &learn_coding, "sample"_a, "weight"_a.none(), "missing"_a, "options"_a,
        "Learn the bins of the columns: is it a category column, has it missing values, number of codes, edges. "
        "`missing` marks the columns of "
        "all rows with missing values.");
  m.def("request", &request_of, "name"_a, "A request that partitions answer at any time.");
  m.def("held_out_loss", &held_out_loss, "answers"_a,
        "Mean validation loss, from the answers of all partitions to \"gradients\".");
  nb::class_<CodedRowsHandle>(m, "CodedRows", "Coded rows of a partitioned table; partitions may share them.")
      .def("__init__", &code_rows, "tables"_a, "coding"_a, "options"_a);
  nb::class_<PartitionHandle>(m, "Partition", "The partition of one booster's rows.")
      .def("__init__", &make_partition, "coded"_a, "target"_a, "weight"_a.none(), "held_weight"_a.none(), "scores"_a,
           "options"_a, "place"_a)
      .def("answer", &answer, "request"_a, "Answer a request of `PartitionedBoosting`.");
  nb::class_<PartitionedHandle>(m, "PartitionedBoosting", "Distributed gradient boosting on partitioned rows.")
      .def("__init__", &start_partitioned, "coding"_a, "n_categories"_a, "n_rows"_a, "weight"_a.none(), "options"_a,
           "n_done"_a, "work_of_message"_a)
      .def("advance", &advance, "channel"_a,
           "Perform one more round. `channel.send` sends a request to all partitions; `channel.receive` returns their "
           "answers "
           "to the oldest "
           "open request, in partition order.")
      .def("trees", &trees_of, "first"_a, "factors"_a = std::vector<double>{}, nb::rv_policy::take_ownership)
      .def("history", &history, "first"_a,
           "The requests from `first` on that bring a new partition to the current state.")
      .def_prop_ro("losses",
                   [](const PartitionedHandle& self) {
                     const PartitionedBoosting& b = *self.boosting;
                     return std::tuple(b.training_loss(), b.held_out_loss(), b.out_of_bag_before(),
                                       b.out_of_bag_after());
                   })
      .def_prop_ro("scales",
                   [](const PartitionedHandle& self) {
                     const TablePlace& all = self.boosting->of_all_rows();
                     return std::tuple(all.n_all_rows, all.weight_scale, all.count_by_weight);
                   })
      .def_prop_ro("n_rounds", [](const PartitionedHandle& self) { return self.boosting->n_rounds(); });
}
