-- Wireshark dissector for faircast, version 3. Made from the field table of crates/wire.
-- Use: wireshark -X lua_script:faircast.lua, or put this file into the personal plugin folder.

-- @TABLES@

local faircast = Proto("faircast", "faircast multicast transfer")
faircast.prefs.port = Pref.uint("UDP port", 5777, "faircast packets on this port are dissected without guessing")

local malformed = ProtoExpert.new("faircast.malformed", "Malformed faircast packet",
  expert.group.MALFORMED, expert.severity.ERROR)
faircast.experts = { malformed }

local function names_of(layouts)
  local names = {}
  for number, layout in pairs(layouts) do names[number] = (layout.name:gsub("_", " ")) end
  return names
end

local kinds, mark_names, content_names = names_of(bodies), names_of(marks), names_of(contents)
local protofields = {}

local function own(name, make)
  local made = make("faircast." .. name)
  protofields[#protofields + 1] = made
  return made
end

local uints = { [1] = ProtoField.uint8, [2] = ProtoField.uint16, [3] = ProtoField.uint24,
  [4] = ProtoField.uint32, [8] = ProtoField.uint64 }

local function protofield(abbr, field)
  local shape, name = field.shape, field.name
  if shape == "uint" then return uints[field.len](abbr, name, base.DEC, nil, nil, field.meaning) end
  if shape == "hex" then return uints[field.len](abbr, name, base.HEX, nil, nil, field.meaning) end
  if shape == "choice" then return ProtoField.uint8(abbr, name, base.DEC, field.names, nil, field.meaning) end
  if shape == "flags" then return ProtoField.uint8(abbr, name, base.HEX, nil, nil, field.meaning) end
  if shape == "half" or shape == "float" then return ProtoField.float(abbr, name, field.meaning) end
  if shape == "text" then return ProtoField.string(abbr, name, base.UNICODE, field.meaning) end
  if shape == "address" then return ProtoField.string(abbr, name, base.ASCII, field.meaning) end
  if shape == "count" then return ProtoField.uint16(abbr, name, base.DEC, nil, nil, field.meaning) end
  return ProtoField.bytes(abbr, name, base.NONE, field.meaning)
end

local function declare(prefix, fields)
  for _, field in ipairs(fields) do
    if field.shape == "list" then
      declare(prefix, field.fields)
    else
      field.proto = own(prefix .. "." .. field.name, function(abbr) return protofield(abbr, field) end)
    end
  end
end

for _, layouts in ipairs({ bodies, marks, contents }) do
  for _, layout in pairs(layouts) do declare(layout.name, layout.fields) end
end

local f_magic = own("magic", function(abbr) return ProtoField.uint8(abbr, "magic", base.HEX) end)
local f_version = own("version", function(abbr) return ProtoField.uint8(abbr, "version", base.DEC, nil, 0xf0) end)
local f_kind = own("kind", function(abbr) return ProtoField.uint8(abbr, "kind", base.DEC, kinds) end)
local f_mark = own("mark", function(abbr) return ProtoField.uint8(abbr, "mark", base.DEC, mark_names, 0xf0) end)
local f_is_sealed = own("is_sealed", function(abbr) return ProtoField.bool(abbr, "is sealed", 8, nil, 0x01) end)
local f_has_options = own("has_options", function(abbr) return ProtoField.bool(abbr, "has options", 8, nil, 0x02) end)
local f_has_rate = own("has_rate", function(abbr) return ProtoField.bool(abbr, "has rate", 8, nil, 0x04) end)
local f_is_relayed = own("is_relayed", function(abbr) return ProtoField.bool(abbr, "is from a relay", 8, nil, 0x08) end)
local f_layer = own("layer", function(abbr) return ProtoField.uint8(abbr, "layer", base.DEC, nil, 0x0f) end)
local f_session = own("session", function(abbr) return ProtoField.uint32(abbr, "session", base.HEX) end)
local f_seq = own("seq", function(abbr) return ProtoField.uint32(abbr, "seq") end)
local f_crc = own("crc", function(abbr) return ProtoField.uint32(abbr, "crc", base.HEX) end)
local f_from = own("from", function(abbr) return ProtoField.uint32(abbr, "from", base.HEX) end)
local f_boot = own("boot", function(abbr) return ProtoField.uint64(abbr, "boot", base.HEX) end)
local f_key = own("key", function(abbr) return ProtoField.uint32(abbr, "key", base.HEX) end)
local f_nonce = own("nonce", function(abbr) return ProtoField.bytes(abbr, "nonce") end)
local f_sealed = own("sealed", function(abbr) return ProtoField.bytes(abbr, "sealed bytes") end)
local f_tag = own("tag", function(abbr) return ProtoField.bytes(abbr, "tag") end)
local f_options = own("options", function(abbr) return ProtoField.bytes(abbr, "options") end)
local f_rate = own("data.rate", function(abbr) return ProtoField.float(abbr, "rate") end)
local f_content = own("content", function(abbr) return ProtoField.uint8(abbr, "content", base.DEC, content_names) end)
local f_payload = own("payload", function(abbr) return ProtoField.bytes(abbr, "payload") end)
faircast.fields = protofields

-- Ends a dissection early; caught in faircast.dissector.
local Stop = "faircast: stop"

local Cursor = {}
Cursor.__index = Cursor

function Cursor:fail(why)
  self.tree:add_proto_expert_info(malformed, "Malformed: " .. why)
  error(Stop, 0)
end

function Cursor:left()
  return self.last - self.at
end

function Cursor:take(len, what)
  if self:left() < len then
    self:fail(string.format("%s needs %d bytes, %d are left", what, len, self:left()))
  end
  local range = self.buffer(self.at, len)
  self.at = self.at + len
  return range
end

local function has_bit(value, mask)
  return math.floor(value / mask) % 2 == 1
end

local function half(range)
  local code = range:uint()
  if code == 0 then return 0 end
  if code == 0xffff then return math.huge end
  return 2 ^ (math.floor(code / 1024) - 20) * (1 + (code % 1024) / 1024)
end

local function address(range)
  local port = range(16, 2):uint()
  local mapped = range(0, 8):uint64() == UInt64(0) and range(8, 4):uint() == 0x0000ffff
  if mapped then return string.format("%s:%d", tostring(range(12, 4):ipv4()), port) end
  return string.format("[%s]:%d", tostring(range(0, 16):ipv6()), port)
end

local function flag_names(value, names, bits)
  local set = {}
  for bit = 0, 7 do
    local mask = math.floor(2 ^ bit)
    if has_bit(value, mask) then set[#set + 1] = names[mask] or bits[mask] or string.format("unknown %d", mask) end
  end
  return #set > 0 and " (" .. table.concat(set, ", ") .. ")" or ""
end

function Cursor:fields(fields, tree)
  for _, field in ipairs(fields) do
    local shape = field.shape
    if shape == "list" then
      local count = table.remove(self.counts, 1)
      if count > 0 then
        local list = tree:add(faircast, self.buffer(self.at), string.format("%s: %d", field.name, count))
        local start = self.at
        for _ = 1, count do self:fields(field.fields, list) end
        list:set_len(self.at - start)
      end
    elseif shape == "half" then
      local range = self:take(2, field.name)
      tree:add(field.proto, range, half(range))
    elseif shape == "float" then
      tree:add(field.proto, self:take(4, field.name))
    elseif shape == "address" then
      local range = self:take(18, field.name)
      tree:add(field.proto, range, address(range))
    elseif shape == "flags" then
      local range = self:take(1, field.name)
      tree:add(field.proto, range):append_text(flag_names(range:uint(), field.names, self.bits))
    elseif shape == "choice" then
      local range = self:take(1, field.name)
      tree:add(field.proto, range)
      if not field.names[range:uint()] then self:fail(field.name .. " is not known") end
    elseif shape == "count" then
      local range = self:take(2, field.name)
      tree:add(field.proto, range)
      self.counts[#self.counts + 1] = range:uint()
    elseif shape == "text" then
      local len = self:take(1, field.name):uint()
      if len > 63 then self:fail(field.name .. " is too long") end
      if len > 0 then tree:add(field.proto, self:take(len, field.name)) end
    elseif shape == "rare text" then
      if self:left() > 0 and self.buffer(self.at, 1):uint() == 2 then
        self:take(1, field.name)
        local len = self:take(1, field.name):uint()
        if len > 63 then self:fail(field.name .. " is too long") end
        if len > 0 then tree:add(field.proto, self:take(len, field.name)) end
      end
    elseif shape == "rare" then
      if self:left() > 0 and self.buffer(self.at, 1):uint() == field.mark then
        self:take(1, field.name)
        tree:add(field.proto, self:take(field.len, field.name))
      end
    elseif shape == "optional" then
      local has = self:take(1, field.name):uint()
      if has > 1 then self:fail(field.name .. " is neither there nor not") end
      if has == 1 then tree:add(field.proto, self:take(field.len, field.name)) end
    else
      tree:add(field.proto, self:take(field.len, field.name))
    end
  end
end

local function is_feedback(kind) return kind == 2 or kind == 5 or kind == 6 or kind == 7 or kind == 9 or kind == 10 or kind == 13 or kind == 15 or kind == 16 end

local function dissect_sealed(cursor, tree, kind, flags)
  if is_feedback(kind) or (has_bit(flags, 8) and kind ~= 1) then
    tree:add(f_from, cursor:take(4, "from"))
    tree:add(f_boot, cursor:take(8, "boot"))
  end
  if kind == 3 then
    tree:add(f_key, cursor:take(4, "key"))
    tree:add(f_nonce, cursor:take(12, "nonce"))
  end
  local sealed = cursor:left() - 16
  if sealed < 0 then cursor:fail("the tag is cut off") end
  if sealed > 0 then tree:add(f_sealed, cursor:take(sealed, "sealed bytes")) end
  tree:add(f_tag, cursor:take(16, "tag"))
end

local function dissect_open(cursor, tree, kind, flags, mark_number, pinfo)
  tree:add(f_crc, cursor:take(4, "crc"))
  if is_feedback(kind) then tree:add(f_from, cursor:take(4, "from")) end
  if has_bit(flags, 2) then
    local len = cursor:take(1, "options"):uint()
    if len > 0 then tree:add(f_options, cursor:take(len, "options")) end
  end
  local mark = marks[mark_number]
  cursor.bits = kind == 1 and mark and mark.bits or {}
  cursor:fields(bodies[kind].fields, tree)
  if kind == 1 then
    if has_bit(flags, 4) then
      local range = cursor:take(2, "rate")
      tree:add(f_rate, range, half(range))
    end
    if not mark then cursor:fail("the mark is not known") end
    cursor:fields(mark.fields, tree)
    if cursor:left() > 0 then tree:add(f_payload, cursor:take(cursor:left(), "payload")) end
  elseif kind == 2 then
    local range = cursor:take(1, "content")
    tree:add(f_content, range)
    local content = contents[range:uint()]
    if not content then cursor:fail("the content is not known") end
    pinfo.cols.info:append(" " .. content.name)
    cursor:fields(content.fields, tree)
  end
  if cursor:left() > 0 then cursor:fail("bytes follow the end of the message") end
end

local function dissect(cursor, tree, pinfo)
  local magic = cursor:take(1, "magic")
  tree:add(f_magic, magic)
  if magic:uint() ~= 0xfc then cursor:fail("this is not a faircast packet") end
  local second = cursor:take(1, "flags")
  local flags = second:uint() % 16
  tree:add(f_version, second)
  if math.floor(second:uint() / 16) ~= 3 then cursor:fail("the version is not known") end
  tree:add(f_is_sealed, second)
  tree:add(f_has_options, second)
  tree:add(f_has_rate, second)
  tree:add(f_is_relayed, second)
  local third = cursor:take(1, "kind")
  local kind = third:uint()
  tree:add(f_kind, third)
  if not bodies[kind] then cursor:fail("the kind is not known") end
  local fourth = cursor:take(1, "layer")
  tree:add(f_mark, fourth)
  tree:add(f_layer, fourth)
  tree:add(f_session, cursor:take(4, "session"))
  local seq = cursor:take(4, "seq")
  tree:add(f_seq, seq)
  pinfo.cols.info = string.format("%s %d", kinds[kind], seq:uint())
  if has_bit(flags, 1) then
    pinfo.cols.info:append(" (sealed)")
    dissect_sealed(cursor, tree, kind, flags)
  else
    dissect_open(cursor, tree, kind, flags, math.floor(fourth:uint() / 16), pinfo)
  end
end

function faircast.dissector(buffer, pinfo, root)
  pinfo.cols.protocol = "faircast"
  local tree = root:add(faircast, buffer())
  local cursor = setmetatable({ buffer = buffer, at = 0, last = buffer:len(), tree = tree, counts = {} }, Cursor)
  local ok, problem = pcall(dissect, cursor, tree, pinfo)
  if not ok and problem ~= Stop then error(problem, 0) end
  return buffer:len()
end

local function looks_like_ours(buffer, pinfo, root)
  if buffer:len() < 12 or buffer(0, 1):uint() ~= 0xfc then return false end
  local second, third = buffer(1, 1):uint(), buffer(2, 1):uint()
  local strange = has_bit(second, 8) and not has_bit(second, 1)
  if math.floor(second / 16) ~= 3 or not bodies[third] or strange then return false end
  faircast.dissector(buffer, pinfo, root)
  return true
end

faircast:register_heuristic("udp", looks_like_ours)

local udp_ports = DissectorTable.get("udp.port")
local registered = faircast.prefs.port
udp_ports:add(registered, faircast)

function faircast.prefs_changed()
  if registered == faircast.prefs.port then return end
  if registered > 0 then udp_ports:remove(registered, faircast) end
  registered = faircast.prefs.port
  if registered > 0 then udp_ports:add(registered, faircast) end
end
