#include <array>
#include <string_view>

#include "postprocess/fields/field_values.h"
#include "postprocess/fields/task_fields.h"
#include "postprocess/fields/task_names.h"

namespace run_model {
namespace {

constexpr std::int64_t kMostKeypoints = 1000;

// One number for both axes, or one for each.
template <typename Read>
std::array<double, 2> pair_field(const JsonField& field, Read&& read) {
  if (field.is_array()) return fixed_list_field<2>(field, read);
  const double both = read(field);
  return {both, both};
}

RegionRule::Turn turn_field(const JsonField& field) {
  constexpr std::array<std::string_view, 3> kKnown{"start", "end", "target"};
  refuse_other_members(field, kKnown);
  RegionRule::Turn turn;
  turn.start = static_cast<std::size_t>(field.member("start").integer(0, kMostKeypoints));
  turn.end = static_cast<std::size_t>(field.member("end").integer(0, kMostKeypoints));
  turn.target = field.member("target").number();
  if (turn.start == turn.end) field.member("end").fail("is the same keypoint as start");
  return turn;
}

}  // namespace

RegionRule region_field(const JsonField& field) {
  constexpr std::array<std::string_view, 5> kKnown{"from", "turn", "shift", "square", "scale"};
  refuse_other_members(field, kKnown);
  RegionRule rule;
  rule.from = enum_or(field, "from", kRegionSources, RegionRule::From::kBox);
  if (const auto turn = find_member(field, "turn")) rule.turn = turn_field(*turn);
  if (rule.from == RegionRule::From::kAlignment && !rule.turn) {
    field.fail("has no \"turn\", whose keypoints are those of \"from\" alignment");
  }
  if (rule.from == RegionRule::From::kOriented && rule.turn) {
    field.member("turn").fail("cannot be there beside \"from\" oriented, which has an angle");
  }
  if (const auto shift = find_member(field, "shift")) {
    const auto number = [](const JsonField& one) { return one.number(); };
    const auto [x, y] = fixed_list_field<2>(*shift, number);
    rule.shift_x = x;
    rule.shift_y = y;
  }
  rule.square = enum_or(field, "square", kSquares, RegionRule::Square::kNone);
  if (const auto scale = find_member(field, "scale")) {
    const auto [x, y] = pair_field(*scale, positive_number);
    rule.scale_x = x;
    rule.scale_y = y;
  }
  return rule;
}

}  // namespace run_model
