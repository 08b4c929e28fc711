#include <topoplace/match.hpp>

// Rings of four in the complete graph of five vertices: 5!/1! mappings, each image 8 times.
int main() {
    using namespace topoplace;
    std::vector<Edge> ring{{0, 1}, {1, 2}, {2, 3}, {0, 3}}, complete;
    for (std::int32_t u = 0; u < 5; ++u) {
        for (std::int32_t v = 0; v < u; ++v) complete.push_back({v, u});
    }
    match::EnumerateParams params;
    params.distinct = match::Distinct::images;
    return match::count_subgraphs(match::Pattern(Graph(4, ring)), match::Target(Graph(5, complete)), params)
                       .count == 15
               ? 0
               : 1;
}
