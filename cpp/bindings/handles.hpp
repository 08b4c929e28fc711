// Handles of objects that several files bind functions of.
#pragma once

#include "convert.hpp"
#include "topoplace/port_network.hpp"
#include "topoplace/ring_rates.hpp"

template <>
class pybind11::detail::type_caster<topoplace::ports::PortNetwork>
    : public topoplace::bindings::HandleCaster<topoplace::ports::PortNetwork> {};
template <>
class pybind11::detail::type_caster<topoplace::ports::FlowCounts>
    : public topoplace::bindings::HandleCaster<topoplace::ports::FlowCounts> {};
template <>
class pybind11::detail::type_caster<topoplace::collective::RingRates>
    : public topoplace::bindings::HandleCaster<topoplace::collective::RingRates> {};
