-- upgrade.lua - allows data of this shard to have a form that older programs cannot read.
--
-- From then on they refuse the shard: those before 0.2 because of its schema, which becomes 2,
-- later ones because of the form's name in `forms`. ARGV: shards, request id (not used), '1', or
-- '0' to read only; then names of forms. Returns the names of the shard's forms, separated by
-- commas.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local forms = {}
for form in string.gmatch(call('HGET', KEYS[1], 'forms') or '', '[^,]+') do
    forms[#forms + 1], forms[form] = form, true
end
for i = 4, #ARGV do
    if not FORMS[ARGV[i]] then
        return refuse('DAMAGED', 'there is no form ' .. ARGV[i])
    elseif not forms[ARGV[i]] then
        forms[#forms + 1], forms[ARGV[i]] = ARGV[i], true
    end
end
if ARGV[3] == '1' then
    call('HSET', KEYS[1], 'schema', UPGRADED, 'forms', table.concat(forms, ','))
end
return table.concat(forms, ',')
