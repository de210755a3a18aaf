-- The log of a fleet. Each run is one call of a member, and one atomic step.
--
-- KEYS: the hash of the fleet and the stream of its log, in one slot of a cluster.
-- ARGV: the name of the call, then what src/script/mod.rs writes for it.
-- Replies: a flat list of strings, of which the first says what follows.
--   attached EPOCH LAST FLOOR SETTLED ROW...   rows LAST ROW...   appended FIRST ROW...   entries FLOOR ENTRY...   left   lost WHAT
--   ROW: incarnation, beat, lease ("-": none), applied, name    ENTRY: sequence, id, by, what
--
-- In the hash: `bytes` (of all entries of this epoch, also those that are not kept any more), `settled` (1: nobody has a lease still from before this epoch), `epoch`, `server` (whose epoch it is), `last` (the number of the last entry), `beats` (renewals of all members), and
-- for each member `m:INCARNATION` with "BEAT LEASE APPLIED NAME". An entry of the stream has the id NUMBER-0, and in `sum` the bytes of all before it.

local fleet, log = KEYS[1], KEYS[2]
local call = ARGV[1]
-- Of what the entries of one reply say.
local BYTES_MAX = 1024 * 1024
-- What an entry takes beside what it says.
local ENTRY_BYTES = 128
-- The server is not asked for its own limit before the log has so many bytes.
local SMALL_BYTES = 64 * 1024
-- The part of the server's memory that the log may take.
local PART = 16

-- Another one after each start and each promotion.
local function identity()
    local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
    local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
    return run .. ':' .. replication
end

local function number(text)
    return string.format('%.0f', text)
end

local function field(name)
    return redis.call('HGET', fleet, name)
end

local function last()
    return tonumber(field('last') or '0')
end

local function sequence_of(entry)
    return tonumber(string.match(entry[1], '^(%d+)-'))
end

-- The number of the last entry that is not kept any more, also where the stream is gone as a whole.
local function floor()
    local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
    return first and sequence_of(first) - 1 or last()
end

-- Whether the entry at which a member stands is here, or was.
local function has(sequence, id)
    sequence = tonumber(sequence)
    if sequence > last() then return false end
    if sequence <= floor() then return true end
    local at = number(sequence) .. '-0'
    local entry = redis.call('XRANGE', log, at, at)[1]
    return entry ~= nil and (id == '' or entry[2][2] == id)
end

local function is_epoch(epoch)
    return field('epoch') == epoch and field('server') == identity()
end

local function parts(row)
    return string.match(row, '^(%d+) (%S+) (%d+) (.*)$')
end

local function add_rows(reply)
    local all = redis.call('HGETALL', fleet)
    for at = 1, #all, 2 do
        local incarnation = string.match(all[at], '^m:(%x+)$')
        if incarnation then
            local beat, lease, applied, name = parts(all[at + 1])
            for _, part in ipairs({ incarnation, beat, lease, applied, name }) do
                reply[#reply + 1] = part
            end
        end
    end
    return reply
end

-- The bytes of all entries before this one. A former version did not count them.
local function sum_before(sequence)
    local at = number(sequence) .. '-0'
    local entry = redis.call('XRANGE', log, at, at)[1]
    return tonumber(entry and entry[2][8] or '0')
end

-- Where the log has more than `most` bytes, or than its part of the server's memory, the older half goes, and the floor follows. The
-- newest entry stays.
local function cut(newest, sum, most)
    local low, high = floor() + 1, newest
    local used = sum - sum_before(low)
    if used <= math.min(SMALL_BYTES, most) then return end
    local limit = tonumber(string.match(redis.call('INFO', 'memory'), 'maxmemory:(%d+)') or '0')
    if limit > 0 then most = math.min(most, limit / PART) end
    if used <= most then return end
    -- The first entry from which on there is no more than a half.
    while low < high do
        local middle = math.floor((low + high) / 2)
        if sum - sum_before(middle) <= most / 2 then high = middle else low = middle + 1 end
    end
    redis.call('XTRIM', log, 'MINID', number(low) .. '-0')
end

local function put_row(incarnation, beat, lease, applied, name)
    local row = number(beat) .. ' ' .. lease .. ' ' .. number(applied) .. ' ' .. name
    redis.call('HSET', fleet, 'm:' .. incarnation, row)
end

if call == 'attach' then
    local fresh, name, incarnation, lease, epoch, sequence, id = unpack(ARGV, 2, 8)
    local here, server = field('epoch'), identity()
    if not here or field('server') ~= server or (epoch == here and not has(sequence, id)) then
        redis.call('DEL', fleet, log)
        redis.call('HSET', fleet, 'epoch', fresh, 'server', server, 'last', '0', 'beats', '0')
        here = fresh
    end
    -- A name has one run at a time.
    local all = redis.call('HGETALL', fleet)
    for at = 1, #all, 2 do
        if string.match(all[at], '^m:') and select(4, parts(all[at + 1])) == name then
            redis.call('HDEL', fleet, all[at])
        end
    end
    local applied = epoch == here and tonumber(sequence) or 0
    put_row(incarnation, redis.call('HINCRBY', fleet, 'beats', 1), lease, applied, name)
    return add_rows({ 'attached', here, number(last()), number(floor()), field('settled') or '0' })
end

if not is_epoch(ARGV[2]) then return { 'lost', 'epoch' } end

if call == 'read' then
    local after, most = tonumber(ARGV[3]), tonumber(ARGV[4])
    local entries = redis.call('XRANGE', log, number(after + 1) .. '-0', '+', 'COUNT', most)
    local reply, bytes = { 'entries', number(floor()) }, 0
    for _, entry in ipairs(entries) do
        local fields = entry[2]
        bytes = bytes + #fields[6]
        -- The others come with the next call.
        if bytes > BYTES_MAX and #reply > 2 then break end
        reply[#reply + 1] = number(sequence_of(entry))
        for at = 2, 6, 2 do
            reply[#reply + 1] = fields[at]
        end
    end
    return reply
end

local incarnation = ARGV[3]

if call == 'leave' then
    redis.call('HDEL', fleet, 'm:' .. incarnation)
    return { 'left' }
end

local row = field('m:' .. incarnation)

if call == 'expire' then
    if row and parts(row) == ARGV[4] then
        redis.call('HDEL', fleet, 'm:' .. incarnation)
    end
    return add_rows({ 'rows', number(last()) })
end

-- What is left tells how far its caller has applied the log.
local sequence, id = ARGV[4], ARGV[5]
if not has(sequence, id) then return { 'lost', 'entry' } end
if not row then return { 'lost', 'member' } end
local beat, lease, applied, name = parts(row)
applied = math.max(tonumber(applied), tonumber(sequence))

if call == 'renew' then
    if ARGV[6] == '1' then redis.call('HSET', fleet, 'settled', '1') end
    put_row(incarnation, redis.call('HINCRBY', fleet, 'beats', 1), lease, applied, name)
    return add_rows({ 'rows', number(last()) })
end

if call == 'append' then
    put_row(incarnation, tonumber(beat), lease, applied, name)
    local kept, first = ARGV[6], last() + 1
    local sequence, sum = first, tonumber(field('bytes') or '0')
    for at = 8, #ARGV, 2 do
        redis.call('XADD', log, 'MAXLEN', kept, number(sequence) .. '-0',
            'id', ARGV[at], 'by', incarnation, 'what', ARGV[at + 1], 'sum', number(sum))
        sequence, sum = sequence + 1, sum + #ARGV[at + 1] + ENTRY_BYTES
    end
    redis.call('HSET', fleet, 'last', number(sequence - 1), 'bytes', number(sum))
    if sequence > first then cut(sequence - 1, sum, tonumber(ARGV[7])) end
    return add_rows({ 'appended', number(first) })
end

return redis.error_reply('ERR larder: no such call')
