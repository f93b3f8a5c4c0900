// Golden figures: what the search of the chapter "Combining and choosing 3D and 5D parallelism"
// prints: how many layouts fit, the best three, and the places of the ones it asks for.
#include "tests/search/search_jobs.h"

#include <array>
#include <vector>

namespace foretrain::test {
namespace {

using Degrees = std::array<std::int64_t, 4>;  // tp, cp, pp, dp

struct Place {
  std::int64_t rank;
  Degrees degrees;
};

struct Listing {
  const char* model;
  std::int64_t gpus, sequence, batch;
  std::size_t feasible;
  std::vector<Place> places;
};

const std::vector<Listing>& listings() {
  static const std::vector<Listing> kListings = {
      {"llama3-70b",
       64,
       8192,
       512,
       24,
       {{1, {4, 2, 2, 4}},
        {2, {4, 2, 4, 2}},
        {3, {4, 2, 8, 1}},
        {5, {8, 1, 1, 8}},
        {9, {8, 1, 4, 2}}}},
      {"llama3-70b",
       64,
       131072,
       32,
       23,
       {{1, {8, 4, 2, 1}}, {2, {4, 8, 2, 1}}, {3, {8, 4, 1, 2}}, {6, {8, 1, 1, 8}}}},
      {"llama3-8b",
       8,
       8192,
       64,
       16,
       {{1, {1, 2, 1, 4}}, {2, {2, 1, 1, 4}}, {3, {2, 2, 1, 2}}, {4, {1, 1, 1, 8}}}},
      {"llama3-70b",
       1024,
       8192,
       512,
       28,
       {{1, {8, 1, 1, 128}}, {2, {4, 2, 2, 64}}, {3, {4, 2, 4, 32}}}},
      {"llama3-70b",
       1024,
       8192,
       2048,
       28,
       {{1, {4, 2, 2, 64}}, {2, {4, 2, 4, 32}}, {3, {8, 1, 1, 128}}}},
  };
  return kListings;
}

TEST(ChapterSearch, FindsThePrintedCountsAndPlaces) {
  for (const Listing& listing : listings()) {
    SCOPED_TRACE(std::string(listing.model) + " on " + std::to_string(listing.gpus) + ", " +
                 std::to_string(listing.sequence) + " tokens, " + std::to_string(listing.batch));
    const TrainingJob job = job_of(listing.model, listing.gpus, listing.sequence, listing.batch);
    const SearchResult result = searched(job, closed_form(job));
    EXPECT_EQ(result.examined, 4 * 6 * 5);
    ASSERT_EQ(result.layouts.size(), listing.feasible);
    EXPECT_TRUE(result.reason.empty()) << result.reason;
    for (const Place& place : listing.places) {
      const RankedLayout& ranked = result.layouts[static_cast<std::size_t>(place.rank) - 1];
      const Layout& layout = ranked.estimate.layout;
      EXPECT_EQ(ranked.rank, place.rank);
      EXPECT_EQ((Degrees{layout.tp, layout.cp, layout.pp, layout.dp}), place.degrees)
          << "rank " << place.rank;
    }
  }
}

TEST(ChapterSearch, ALayoutAskedForHasItsPlaceInTheList) {
  for (const Listing& listing : listings()) {
    const TrainingJob job = job_of(listing.model, listing.gpus, listing.sequence, listing.batch);
    SearchOptions options = closed_form(job);
    for (const Place& place : listing.places) {
      options.shown.push_back(
          {.tp = place.degrees[0], .cp = place.degrees[1], .pp = place.degrees[2]});
    }
    const SearchResult result = searched(job, options);
    ASSERT_EQ(result.shown.size(), listing.places.size());
    for (std::size_t at = 0; at < result.shown.size(); ++at) {
      ASSERT_TRUE(result.shown[at].layout) << result.shown[at].reason;
      EXPECT_EQ(result.shown[at].layout->rank, listing.places[at].rank);
    }
  }
}

}  // namespace
}  // namespace foretrain::test
