-- Scripts run in the server's Lua 5.1 with the prelude in front of them.
std = 'lua51'
read_globals = { 'redis', 'cmsgpack' }
globals = { 'KEYS', 'ARGV' }
max_line_length = 140
