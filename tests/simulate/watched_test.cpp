#include "sim/simulate/watched.h"

#include "tests/support/tiny_program.h"

#include <gtest/gtest.h>

/// Who is watched when watching all records too much, and whom it stands for.
namespace foretrain {
namespace {

using Numbers = std::vector<std::int32_t>;

/// Templates of 4 tasks, two of them a stage: of one rank and of three. In each the first two calls
/// are two blocks of one name, as forwards with and without a transfer beside them are.
Program of_stages(int stages) {
  TinyProgram tiny;
  for (int stage = 0; stage < stages; ++stage) {
    for (const std::int64_t ranks : {1, 3}) {
      const std::int32_t list = tiny.list({compute(10), compute(20), compute(30), compute(40)});
      tiny.instance(list);
      tiny.program.instances.back().multiplicity = ranks;
      Template& body = tiny.program.templates.back();
      body.stage = stage;
      const char* const names[] = {"F", "F", "B", "optimizer"};
      for (std::size_t c = 0; c < body.calls.size(); ++c) {
        tiny.program.blocks[static_cast<std::size_t>(body.calls[c].block)].name = names[c];
      }
    }
  }
  return tiny.program;
}

TEST(Watched, AllThatFit) {
  const Program program = of_stages(3);
  const Watched watched(program, 24);
  EXPECT_EQ(watched.instances(), (Numbers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(watched.records(), 24);
  for (std::int32_t t = 0; t < 6; ++t) {
    EXPECT_EQ(watched.template_for(t), t);
    EXPECT_EQ(watched.calls_for(t), (Numbers{0, 1, 2, 3}));
  }
}

TEST(Watched, OneClassOfATemplateIsEnough) {
  Program program = of_stages(2);
  for (Instance& instance : program.instances) {
    instance.template_index = 0;
  }
  const Watched watched(program, 15);
  EXPECT_EQ(watched.instances(), Numbers{1});  // three ranks, the first of such classes
}

TEST(Watched, OneOfEachStageAndOfStagesEvenlyApart) {
  const Program program = of_stages(5);
  const Watched stages(program, 39);
  EXPECT_EQ(stages.instances(), (Numbers{1, 3, 5, 7, 9}));
  EXPECT_EQ(stages.template_for(6), 7);
  const Watched three(program, 19);
  EXPECT_EQ(three.instances(), (Numbers{1, 3, 5, 9}));
  EXPECT_EQ(three.records(), 16);
  EXPECT_EQ(Watched(program, 15).instances(), (Numbers{1, 5, 9}));
  EXPECT_EQ(Watched(program, 15).template_for(7), 5);  // as near as 9; the first
  EXPECT_EQ(Watched(program, 8).instances(), (Numbers{1, 9}));
  EXPECT_EQ(Watched(program, 1).instances(), Numbers{1});
}

TEST(Watched, BlocksAreAlikeByNameAndPlace) {
  Program program = of_stages(1);
  // The watched template tells of a block that comes first there and last here, and of none named
  // "gather".
  std::swap(program.templates[0].calls[0], program.templates[0].calls[3]);
  program.blocks[static_cast<std::size_t>(program.templates[0].calls[1].block)].name = "gather";
  const Watched watched(program, 7);
  EXPECT_EQ(watched.instances(), Numbers{1});
  EXPECT_EQ(watched.calls_for(0), (Numbers{3, -1, 2, 0}));
}

}  // namespace
}  // namespace foretrain
