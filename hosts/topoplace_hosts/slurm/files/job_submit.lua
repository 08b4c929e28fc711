-- Slurm's job_submit/lua plugin for topoplace: a job that asks for GPUs of each node is held until `topoplace slurm run`
-- decides which GPUs it gets. What the placer must know goes into AdminComment, which users cannot write.
-- A site with its own job_submit.lua loads this file and calls topoplace_submit and topoplace_modify.

-- Users who may hold, release and change jobs that wait for topoplace; the placer runs as one of them.
local OPERATORS = { [0] = true }

-- Partitions whose jobs are decided, such as { pilot = true }; {} for all. A job that names none is in none of them.
local PARTITIONS = {}

local MARK = "topoplace1"
local MAX_VALUE = 64
local MAX_MARK = 900
local VARIABLES = {
  "PATTERN", "SENSITIVE", "MIN_UTILITY", "MIN_BANDWIDTH", "WITHIN", "PREFER", "GROUPS", "PREFER_GROUPS", "BALANCED",
  "MODEL", "MEMORY_GB",
}
local NO_VAL = 4294967294

local function encoded(text)
  return (text:gsub("[^%w._,-]", function(c) return string.format("%%%02X", c:byte()) end))
end

local function given(text)
  return text ~= nil and text ~= ""
end

local function is_number(value)
  return value ~= nil and value > 0 and value < NO_VAL
end

-- Slurm names a generic resource gres:gpu before 23.11 and gres/gpu since then, and accepts only its own form here.
local function prefix_of(tres)
  return tres:match("^gres[:/]") or "gres:"
end

-- True if one of the resources in a list such as cpu=4,gres/gpu=1 is a GPU.
local function asks_for_gpus(tres)
  for part in (tres or ""):gmatch("[^,]+") do
    local name = part:gsub("^gres[:/]", "")
    if name == "gpu" or name:match("^gpu[:=]") then return true end
  end
  return false
end

local function asks_otherwise(job_desc)
  return asks_for_gpus(job_desc.tres_per_job) or asks_for_gpus(job_desc.tres_per_task)
    or asks_for_gpus(job_desc.tres_per_socket)
end

-- GPUs of each node, and their model or nil; nil if the request is for anything else.
local function gpus_of(tres)
  if not given(tres) then return nil end
  local plain = tres:gsub("^gres[:/]", "")
  if plain == "gpu" then return 1 end
  local count = plain:match("^gpu[:=](%d+)$")
  if count then return tonumber(count) end
  local model, many = plain:match("^gpu:([%a][%w_.-]*)[:=](%d+)$")
  if model == nil then model, many = plain:match("^gpu:([%a][%w_.-]*)$"), "1" end
  if model == nil or model:match("^g%d+$") then return nil end
  return tonumber(many), model
end

-- True if one of the flags of a job is set; flag: nil where Slurm does not know it.
local function has_flag(job_desc, flag)
  return flag ~= nil and math.floor((job_desc.bitflags or 0) / flag) % 2 == 1
end

local function left_to_slurm(why)
  slurm.log_user("topoplace: Slurm chooses the GPUs of this job: %s", why)
  return slurm.SUCCESS
end

-- Words `name=value` with semicolons between for AdminComment; nil if a value is too long.
local function mark_of(job_desc, gpus, model)
  local words = { MARK, "gpus=" .. gpus }
  for _, name in ipairs(VARIABLES) do
    local value = job_desc.environment and job_desc.environment["TOPOPLACE_" .. name]
    if name == "MODEL" and not given(value) then value = model end
    if given(value) then
      if #value > MAX_VALUE then return nil end
      words[#words + 1] = name:lower() .. "=" .. encoded(value)
    end
  end
  if given(job_desc.req_nodes) then words[#words + 1] = "nodelist=" .. encoded(job_desc.req_nodes) end
  if given(job_desc.exc_nodes) then words[#words + 1] = "exclude=" .. encoded(job_desc.exc_nodes) end
  if given(job_desc.comment) and job_desc.comment:sub(1, 1) == "{" then words[#words + 1] = "json=1" end
  local mark = table.concat(words, ";")
  if #mark > MAX_MARK then return nil end
  return mark
end

local function is_in_partitions(job_desc)
  if next(PARTITIONS) == nil then return true end
  for name in (job_desc.partition or ""):gmatch("[^,]+") do
    if not PARTITIONS[name] then return false end
  end
  return given(job_desc.partition)
end

function topoplace_submit(job_desc, submit_uid)
  job_desc.admin_comment = ""
  if not is_in_partitions(job_desc) then return slurm.SUCCESS end
  local gpus, model = gpus_of(job_desc.tres_per_node)
  if gpus == nil or gpus == 0 then
    if asks_for_gpus(job_desc.tres_per_node) or asks_otherwise(job_desc) then
      return left_to_slurm("only --gres=gpu:N and --gpus-per-node=N are decided")
    end
    return slurm.SUCCESS
  end
  if job_desc.environment and job_desc.environment["TOPOPLACE"] == "off" then return slurm.SUCCESS end
  if asks_otherwise(job_desc) then
    return left_to_slurm("it asks for GPUs in two ways")
  end
  if job_desc.shared == 0 then return left_to_slurm("it wants nodes for itself") end
  if is_number(job_desc.max_nodes) and is_number(job_desc.min_nodes) and job_desc.max_nodes > job_desc.min_nodes then
    return left_to_slurm("it leaves open how many nodes it gets")
  end
  if has_flag(job_desc, slurm.SPREAD_SEGMENTS) or has_flag(job_desc, slurm.CONSOLIDATE_SEGMENTS) then
    return left_to_slurm("it says how its segments share blocks")
  end
  if job_desc.priority == 0 then return left_to_slurm("it was submitted with --hold") end
  local mark = mark_of(job_desc, gpus, model)
  if mark == nil then return left_to_slurm("its nodes or a TOPOPLACE_ variable are too long") end
  job_desc.tres_per_node = string.format("%sgpu:%d", prefix_of(job_desc.tres_per_node), gpus)
  job_desc.admin_comment = mark
  job_desc.priority = 0
  return slurm.SUCCESS
end

function topoplace_modify(job_desc, job_rec, modify_uid)
  local mark = job_rec.admin_comment
  if OPERATORS[modify_uid] or mark == nil or mark:sub(1, #MARK) ~= MARK then return slurm.SUCCESS end
  local changes_hold = job_desc.priority ~= nil and job_desc.priority ~= NO_VAL
  if changes_hold or given(job_desc.tres_per_node) or asks_otherwise(job_desc) or given(job_desc.req_nodes) then
    slurm.log_user("topoplace decides when and where this job starts: cancel it instead")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  return topoplace_submit(job_desc, submit_uid)
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return topoplace_modify(job_desc, job_rec, modify_uid)
end

return slurm.SUCCESS
