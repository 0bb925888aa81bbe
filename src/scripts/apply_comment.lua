-- apply_comment.lua - adds a comment in another shard to the list of its parent, or removes it.
--
-- Runs in the shard of the parent. ARGV: shards, request id (not used), 'comment' or 'uncomment',
-- id of the operation, id of the parent, id of the comment. Returns 1, or 0 if it came too late to
-- change anything.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local operation, id, parent, comment = unpack(ARGV, 3, 6)
check_comment(parent)
if is_outdated('comment', parent, comment, id) then
    return 0
end

note_applied('comment', parent, comment, id)
change_comment(operation, id, parent, comment)
return 1
