#include "pointer_views.h"

#include <algorithm>

namespace pto::engine {
namespace {

constexpr int32_t kUnknown = -1;  // nothing has been seen yet

int64_t UnitOf(Space space) {
  switch (space) {
    case Space::kLeft:
    case Space::kRight:
      return 512;
    case Space::kAcc:
      return 1024;
    default:
      return 32;
  }
}

class Search {
 public:
  Search(const FunctionTree& tree, std::vector<PointerView>* views)
      : tree_(tree), views_(views), of_(tree.types.size(), kUnknown) {}

  std::vector<uint16_t> Run() {
    Declare(tree_.body);
    if (views_->empty()) return {};
    for (uint32_t v : tree_.parameter_values) of_[v] = 0;
    do {
      changed_ = false;
      Visit(tree_.body);
    } while (changed_);
    std::vector<uint16_t> found(of_.size());
    for (size_t i = 0; i < of_.size(); ++i) found[i] = static_cast<uint16_t>(std::max(of_[i], 0));
    return found;
  }

 private:
  bool IsPointer(uint32_t value) const { return tree_.types[value].kind == Kind::kPointer; }

  // The view that a castptr says its result points into; 0: it says nothing.
  int32_t Declared(const Op& op) {
    const Attribute *name = op.Find("view"), *begin = op.Find("begin"), *end = op.Find("end");
    if (op.name != "castptr" || !name || !begin || !end || op.results.size() != 1) return 0;
    const Space space = tree_.types[op.results[0]].space;
    for (size_t i = 0; i < views_->size(); ++i) {
      const PointerView& v = (*views_)[i];
      if (v.name == name->text && v.space == space && v.begin == begin->integer && v.end == end->integer) {
        return static_cast<int32_t>(i + 1);
      }
    }
    if (views_->size() >= UINT16_MAX) return 0;
    PointerView v;
    v.name = name->text, v.space = space, v.begin = begin->integer, v.end = end->integer;
    const int64_t unit = UnitOf(space);
    v.limit = (v.end + unit - 1) / unit * unit;
    views_->push_back(v);
    return static_cast<int32_t>(views_->size());
  }

  void Declare(const Region& region) {
    for (const Op& op : region.ops) {
      const int32_t view = Declared(op);
      if (view) of_[op.results[0]] = view;
      for (const Region& inner : op.regions) Declare(inner);
    }
  }

  void Join(uint32_t to, int32_t view) {
    if (view == kUnknown || of_[to] == view || of_[to] == 0) return;
    of_[to] = of_[to] == kUnknown ? view : 0;
    changed_ = true;
  }
  void JoinValue(uint32_t to, uint32_t from) {
    if (IsPointer(to) && IsPointer(from)) Join(to, of_[from]);
  }

  static const std::vector<uint32_t>& Yielded(const Region& region) {
    static const std::vector<uint32_t> kNothing;
    return !region.ops.empty() && region.ops.back().name == "yield" ? region.ops.back().operands : kNothing;
  }
  // Values that are handed on from one list to another, from given positions on.
  void Hand(const std::vector<uint32_t>& to, size_t first_to, const std::vector<uint32_t>& from, size_t first_from) {
    for (size_t i = 0; first_to + i < to.size() && first_from + i < from.size(); ++i) {
      JoinValue(to[first_to + i], from[first_from + i]);
    }
  }

  void Visit(const Region& region) {
    for (const Op& op : region.ops) {
      if (op.name == "for" && op.regions.size() == 1) {
        const Region& body = op.regions[0];
        for (const auto& [from, first] : {std::pair{&op.operands, size_t{3}}, std::pair{&Yielded(body), size_t{0}}}) {
          Hand(body.arguments, 1, *from, first);
          Hand(op.results, 0, *from, first);
        }
      } else if (op.name == "while" && op.regions.size() == 2) {
        for (const std::vector<uint32_t>* from : {&op.operands, &Yielded(op.regions[1])}) {
          for (const Region& inner : op.regions) Hand(inner.arguments, 0, *from, 0);
          Hand(op.results, 0, *from, 0);
        }
      } else if (op.regions.size() > 0) {
        for (const Region& inner : op.regions) Hand(op.results, 0, Yielded(inner), 0);
      } else {
        VisitPlain(op);
      }
      for (const Region& inner : op.regions) Visit(inner);
    }
  }

  // A pointer that an operation gives lies where those lie that it is made from.
  void VisitPlain(const Op& op) {
    for (uint32_t result : op.results) {
      if (!IsPointer(result)) continue;
      if (op.name == "castptr" && of_[result] > 0) continue;  // says so itself
      bool made = false;
      for (uint32_t operand : op.operands) {
        if (!IsPointer(operand) || tree_.types[operand].space != tree_.types[result].space) continue;
        made = true;
        Join(result, of_[operand]);
      }
      if (!made) Join(result, 0);
    }
  }

  const FunctionTree& tree_;
  std::vector<PointerView>* views_;
  std::vector<int32_t> of_;
  bool changed_ = false;
};

// Which operand an operation writes through, and only through; -1: it may read and write through all.
int Destination(const std::string& name) {
  if (name.compare(0, 4, "mte_") == 0) return 1;
  return name == "vbitsort" || name == "vmrgsort4" ? 0 : -1;
}

}  // namespace

std::vector<uint16_t> FindPointerViews(const FunctionTree& tree, std::vector<PointerView>* views) {
  return Search(tree, views).Run();
}

std::vector<ViewUse> UsesOfViews(const FunctionTree& tree, const std::vector<uint16_t>& of_values,
                                 const std::vector<PointerView>& views, const Op& op) {
  std::vector<ViewUse> uses;
  const int destination = Destination(op.name);
  const auto role = [&](size_t i) {
    ViewUse use;
    use.reads = destination != static_cast<int>(i), use.writes = destination < 0 || !use.reads;
    return use;
  };
  for (size_t i = 0; i < op.operands.size(); ++i) {
    ViewUse use = role(i);
    use.view = of_values[op.operands[i]];
    if (use.view) uses.push_back(use);
  }
  // Where another pointer of the same role may point anywhere, nothing is known.
  for (size_t i = 0; i < op.operands.size() && !uses.empty(); ++i) {
    const ValueType& type = tree.types[op.operands[i]];
    if (type.kind != Kind::kPointer || of_values[op.operands[i]]) continue;
    const ViewUse other = role(i);
    for (ViewUse& use : uses) {
      if (views[use.view - 1u].space != type.space) continue;
      use.reads &= !other.reads, use.writes &= !other.writes;
    }
  }
  uses.erase(std::remove_if(uses.begin(), uses.end(), [](const ViewUse& u) { return !u.reads && !u.writes; }),
             uses.end());
  return uses;
}

}  // namespace pto::engine
