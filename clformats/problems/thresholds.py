"""The numbers that decide between kernels, in one table: what each is, and where it comes from.

The last words of each tell its source. *Measured*: by the experiment that stands there. *Fitted*:
so that the cost model orders `bench/schedules.tsv` and `bench/rankings.tsv` as they were measured,
half of them with AVX-512. *Published*: by makers, or by OpenCL. *Chosen*: what follows from the
other numbers, or what bounds a search or the text of a kernel; results hardly depend on it.
"""

from __future__ import annotations

# --- machines -------------------------------------------------------------------------------------

LINE_BYTES = 64
"""A cache line of every processor on which streaming stores matter here. Published."""
STREAMED_LEAST = 4 << 20
"""From fewer moved bytes on streaming stores cannot gain: the second cache holds them. Chosen."""
STREAMED_MOST = 64 << 20
"""Copies that gain by streaming stores from more bytes on count as if from here; nor has a record
more. Chosen."""
STREAMED_USUAL = 21 << 20
"""Streaming stores are used from these moved bytes on, where nothing was measured, whatever cache
the device reports: Intel's runtime reports the second-level one, PoCL that of the host, of which a
guest has a slice. On a Zen 5 the two measurements below balance there.

*In turn* memory goes round in 150 to 300 MB, as in a large network; *again* the same two tensors
are moved over and over. Measured: how many times as long ordinary stores take as streaming ones, on
a Zen 5 with 32 MB of cache, PoCL and Intel's runtime (AVX2), 36 reorders of networks on each. In
turn 1.05 and 1.11 at 18 to 22 MB, 1.27 and 1.40 at 22 to 28; again 0.73 and 0.70, 0.92 and 0.89,
and at 0.1 to 9 MB 0.90 and 0.66. A Xeon (Emerald Rapids) that reports 260 MB would gain earlier,
PoCL and Intel's runtime (AVX-512), 82 random reorders: in turn 1.91 and 1.56 at 2 to 9 MB, 1.70 and
1.85 at 9 to 21, 1.66 and 1.58 at 21 to 64; again 1.17 and 0.95, 1.06 and 1.17, 1.25 and 1.09."""

# --- the cost of a schedule on a CPU --------------------------------------------------------------

FAR_BYTES = 64 << 10
"""The part of the second cache that a work-item can count on. Fitted to `bench/schedules.tsv`, of
all three processors. 33 of 471 random reorders have other plans than with 256 KB, which take 0.98
and 0.97 of their time (Zen 3, PoCL and Intel's runtime)."""
NEAR_BYTES = 20 << 10
"""The part of the nearest cache that a work-item can count on. Fitted."""
JUMP_BYTES = 32
"""What could be read in the time that a jump to another place costs. Fitted."""
SENT_BYTES = 8
"""The same for a row that stores past the cache go to, and again for a jump: where the tile before
was in no row that is near. Rows in line buffers are near. Fitted: 72 of 2,000 random reorders have
other plans than without jumps, in 0.95 and 0.96 of the time (Zen 3, PoCL, Intel's runtime)."""
HOP_BYTES = 64
"""The same for a row of the source that ends, beside its jump: prefetchers have to find another.
Fitted on a Zen 3, PoCL and Intel's runtime. Of 981 random reorders 14 have other plans with 48,
which take 1.04 and 1.01 of the time, and 29 with 96, which take 1.02 and 1.05."""
LEAST_HOP = 300
"""The least of that where the rows of a tile end, however few: a prefetcher starts anew. Stores
that wait for whole lines hide it. Fitted on a Zen 3, PoCL and Intel's runtime: of 981 random
reorders 7 have other plans with 200, which take 1.08 and 1.13 of the time, and 11 with 400, 1.03
and 1.02; 17, whose stores wait, would take 1.02 and 1.01 if it counted there, too."""
LEFT_BYTES = 400
"""The same for leaving the innermost loop and entering it again; a prefetch does so on its own.
Fitted: where that loop has two tiles, as along 25 elements, longer ones are three times as fast."""
CORE_GB_S = 35
"""Gigabytes a second that a core reads and writes in a copy outside the caches, where nothing was
measured. Misses of what the caches hold always count by it. Fitted, with `BANK_MISS_NS`."""
BANK_MISS_NS = 8.0
"""Nanoseconds more of a core for a store whose place is in few banks of memory, or sets of a cache.
The faster memory is, the more bytes it could move meanwhile. Fitted: on a Zen 5, a Zen 4 and a
Zen 3, whose two cores copy 70 to 80, 50, and 20 to 25 GB/s, the records ask for 280 bytes, 140 to
200, and 100. On the Zen 3 24 of 471 reorders have other plans with 100 than with 280, which take
0.92 of the time on PoCL and on Intel's runtime; with 60 and with 150 others take 1.06 to 1.12."""
OPEN_ROWS = 48
"""Rows in few banks of memory that stay open together: where no more come before one goes on, none
misses its bank. Measured with lines that pass the cache, distances of 512 bytes to 36 KiB, two
cores of a Zen 5: 81 GB/s with 32 rows, 76 with 48, 46 with 64, 32 with 128, 25 with 1,000."""
PAGE_BYTES = 4096
"""A page of memory. Published."""
HELD_PAGES = 1000
"""Pages whose addresses a work-item can count on in the second level of the TLB. Fitted: a Zen 3
has 2048 places, a Zen 4 3072, a Zen 5 4096, of which a core has half where two share them. Lines of
pages in turn take 3 ns each on a Zen 3 where there are 64 pages, 4.5 with 1,024, 8 with 1,536 and
17 with 1,792; a tile has other pages, too, those of the destination among them: it reads 128 bytes
of each of 1,024 pages in turn at 0.34 of a copy, 256 bytes at 0.54."""
NEW_PAGE_BYTES = 300
"""What could be read in the time that it takes to find the address of another page of the source.
Fitted: with 100 the model orders 2 of 100 pairs of schedules fewer rightly on a Zen 3 and a Zen 4,
and as many on a Zen 5."""
BYTE_NS = 0.1
"""Nanoseconds for a byte from or to memory. Fitted."""
CACHED = 0.2
"""The share of this that a byte takes within the caches. Fitted."""
ACCESS_NS = 0.32
"""Nanoseconds for a load or store of a register. Fitted."""
SHUFFLE_NS = 2.0
"""Nanoseconds for a shuffle of a register. Fitted."""
BESIDE_SHARE = 0.5
"""The share of the elements beside those that a tile takes of a block, which is read again. Fitted:
24 of 42 reorders between blocks that do not divide each other have other plans than without it,
with the tiles of whole blocks that it asks for; these take 0.84, 0.82 and 0.80 of their time
(Zen 4, PoCL, Intel's runtime with AVX-512, and with AVX2)."""
TOUCHED_LINE_NS = 3.0
"""Nanoseconds for a cache line that a tile touches. Fitted."""
OLD_LINE_NS = 12.0
"""Nanoseconds more for a line of the destination whose old values are read. Fitted to 212 random
sums; of 230 others 35 have other plans, which take 0.95 of the time (Zen 4, PoCL), and 36, 0.96
(Intel's runtime, AVX2)."""
TOUCHED_LINES = 48
"""Lines of a tile from which on one costs twice that where caches hold what is moved. Fitted; where
they do not, `EXPOSED_BYTES` says what large tiles cost."""
EXPOSED_CACHED, EXPOSED_SHARE, EXPOSED_BYTES = 0.25, 0.4, 32 << 10
"""The share of the time of shuffles that memory does not hide, or the reverse: where caches hold
what is moved; where they do not; and how many bytes of a tile add 1 to it there. A core looks some
hundred instructions ahead, so a large tile waits for its loads first and for its stores after them.
Fitted: 104 of 471 reorders, most of them random, have other schedules than with 1/4 everywhere and
cheaper pages, mostly of smaller tiles; these take 0.94 and 0.95 of the time (Zen 3, PoCL, Intel's
runtime)."""
EDGE_NS = 12.0
"""Nanoseconds for an element of a tile that reaches beyond the elements of a dimension, where lanes
are stored one by one. Fitted."""
EDGE_LOADED_NS = 2.0
"""The same where vectors are only loaded under masks. Measured: of what networks reorder, 16 take
0.90 of the time that they took with one price (PoCL), 24 take 0.92 (Intel's runtime, AVX2)."""
TILE_NS = 6.0
"""Nanoseconds to go on to the next tile. Fitted."""
ITEM_NS = 100.0
"""Nanoseconds for a work-item. Fitted."""
FALSE_SHARING_NS = 25.0
"""Nanoseconds more for a row of a tile where cores write parts of the same lines at the same time.
Fitted: u8 `b_fs_yx_fsv32` to `yxfb` of a batch of 15 takes 15 times as long (PoCL, two cores)."""
OWNED_BYTES = 4.0
"""Bytes that move for each byte of an ordinary store: its line is read and written back. Fitted."""
STAGED_NS, STAGED_ENDS = 0.014, 4.0
"""Nanoseconds of a core for a byte of rows that are put together first, in which it could move more
the faster memory is; and how many lines more move for a row, which begins and ends within lines,
also of one that passes the cache as it is. Fitted."""
STAGED_RUN = 8_000
"""The bytes of a run that would double `STAGED_NS`: nothing is read while it is sent. Fitted: with
28,000 23 and 33 of 2,198 random reorders have other plans, which take 1.11 and 1.13 of the time;
with 5,000 12 and 16, which take 0.97 and 1.01 (Zen 4, PoCL, Intel's runtime with AVX2)."""
KEPT_BYTES, KEPT_ENDS = 1.2, 18.0
"""Bytes that move for each byte of rows that wait in a line buffer; and how many lines more for a
row, which begins and ends within lines. Fitted."""
KEPT_ROW_BYTES = 34
"""Bytes that could move while a tile comes back to a row that waits there, if the buffers of all
tiles in turn take `STAGE_BYTES`, as much as the nearest cache. Fitted to 112 random reorders; 39 of
720 others have other plans, which take 0.93, 0.99 and 0.93 of their time (Zen 4, PoCL, Intel's
runtime with AVX2, and with AVX-512)."""
SAME_BANK = 512
"""Places so many bytes apart, times any whole number, are in few banks of memory and few sets of a
cache. Measured with lines that pass the cache, two cores of a Zen 5: 34 GB/s at odd multiples of 64
and 128, 23 of 256, 13 of 512 and more; runs of two lines 48, 45, 26, of four 53, 53, 46."""
ONE_SET = 4096
"""Lines so many bytes apart, times any whole number, share a set of the nearest cache. Published.

Elements of 1 and 2 bytes of rows so far apart take 0.75 to 0.8 of the time as words that trade
them, geometric means of 46 reorders on three kinds of vectors; 2 KiB apart 0.7 to 1.5. Measured."""
SET_ROWS, REREAD_BYTES = 16, 80
"""Rows in one set of the nearest cache: where a tile has more, and the next one reads their lines
again, each costs as much as reading so many bytes. Such sets have 8 to 12 places. Fitted: with 40,
10 to 16 of 351 reorders of weights with 1,024 inputs and more take 1.2 (Zen 4, PoCL, Intel's
runtime) and 1.37 times as long (AVX2). Measured on a Zen 5, f32 3x3 `oiyx` to `hwio`: tiles of 64
rows of 36 bytes reach 1.0 of a copy where these lie 37,440 bytes apart, 0.55 at 36,864."""
MOST_APART = 1 << 16
"""How far apart lines have to be to share one place of the second cache, at the most. Published."""
INSERTED = 5
"""Accesses that a lane costs which is loaded by itself. Fitted."""
SPILLED = 12
"""Accesses that a shuffle costs of a register that there is none for. Fitted."""

# --- tiles in registers ---------------------------------------------------------------------------

LONGEST_SPLIT = 64
"""The longest part of a loop that one tile takes. Chosen."""
OVERLAP = 1.05
"""A short loop is taken whole where its tiles would move so many times its elements. Chosen: 61 and
70 of 900 random reorders of networks' formats take 0.92 and 0.91 of their time with 1.2, together
with a price for what overlapping tiles store twice (Zen 4, AVX2, PoCL). Where the loop is a row of
the destination, 89, 90 and 72 of 2,198 take 0.80, 0.80 and 0.90 of the time of tiles that overlap
(Zen 4, PoCL, Intel's runtime with AVX-512, and with AVX2)."""
PREFETCHED_PLACES = 16
"""Blocks of the source that tiles with tables take: a core reads from so many places at once before
its prefetcher loses them. Fitted."""
LONGEST_ROW = 256
"""The longest row that tiles take whole where both sides have it: each length is a program.
Measured on a Zen 5, 18 MB and more, 25 to 192 elements: 50 reorders of windows and heads took 0.72
of the time (PoCL) and 0.64 (Intel's runtime, AVX2) of parts of rows; 288 and 400 take 0.8 to 0.9.
"""
FEW_ELEMENTS = 64
"""Up to this many elements in one block, such as 3 channels in a block of 16, the bounds are
constants of the kernel: they select lanes of a vector, at no cost. Chosen."""
MOST_LANES = 16
"""Of a vector. Published: OpenCL's longest."""
APART_SHARE, APART_SHARE_OF_BYTES = 1 / 2, 2 / 3
"""The share of a vector that rows of the source have to fill, so that each is loaded by itself:
see `runs.row_apart`. Measured on a Zen 4: 28 reorders of batches of 9 to 15 and windows of 3 x 3 of
16-bit elements take 0.93 of the time of vectors that go on from row to row (PoCL), 0.97 and 0.75
(Intel's runtime with AVX-512, and with AVX2), of 32-bit ones 0.96 to 0.98. Bytes of 11 to 15 take
0.65 to 1.07; of 9, whose lanes one instruction reaches, 1.0 to 1.4."""
FEW_PATTERNS = 4
"""Shuffles that recur after at most so many vectors are alike. Measured: rows of 12 in vectors of
16 take 0.95 to 1.18 of the time by themselves, and of 3 and 6 in vectors of 8 0.95 to 1.07."""
SHORT = 9
"""Longer loops than a vector are not taken whole, but for blocks and, in large tensors, some whole
vectors: each size would be a program. Measured on a Zen 5: from `bfyx` to `yxfb` of a batch of 16,
32, 48 or 64, 68 reorders take 0.72 of the time (PoCL), 51 and 48 take 0.65 and 0.69 (Intel's
runtime, with AVX2)."""
MOST_ELEMENTS = 4096
"""Elements of the largest tiles: compilers take minutes for more. Measured."""
MOST_VECTORS = 160
"""Loads and stores together of the largest tiles, for the same reason: 1.1 s of PoCL's compiler,
2.2 where some tiles are at an edge; Intel's takes half. Twice as many of words that are taken apart
in a loop, which has the text once, of rows of large tensors that are loaded by themselves (0.6 to
1.6 s), and of rows of two lines in few banks of memory: bytes of 4096 x 11008 are transposed in 0.6
of the time. Where words trade elements, also twice the vectors of the usual tile: a plain order to
AWQ's, 4096 x 4096, in 0.73 of the time. Measured."""
MOST_PLACES_STORED = 2 * MOST_ELEMENTS
"""Places of the largest tiles, if half of them at the least are known to be padding. Chosen."""
PADDING_TEXT = 1 / 16
"""What a stored vector that is known to be padding counts in `MOST_ELEMENTS` and `MOST_VECTORS`, in
large tensors, where most of them are in loops: see `clformats.kernels.zeros`. With one batch of 32
a tile has 31 of them for each other one; it compiles in 0.7 s of PoCL's, and takes 0.2 to 0.4 of
the time (Zen 3). Measured."""
LEAST_APART = 16
"""Places between elements of a word that is taken apart: the lanes of a vector. Chosen."""
MOST_LOOPS = 12
"""Loops that a kernel counts: problems have up to eight, and three may be blocked. Chosen."""

# --- how lines reach memory -----------------------------------------------------------------------

LEAST_STREAM = 16
"""The least store that passes the cache, in bytes. Published."""
LONG_RUN_BYTES = 256
"""A run of which such stores make most lines whole. Chosen."""
OPEN_LINES = 7
"""Lines of which a core may have stored parts past the cache; where more are begun it sends them in
parts. Measured on a Zen 4: two cores store 64 bytes that begin inside lines at 38 GB/s to three
rows in turn, which are six lines, at 5.6 to four; 16 bytes at 15 GB/s to six rows, at 2.6 to eight.
"""
LEAST_WORD = 64
"""The least bits of a vector of elements that share bytes which pass the cache. Chosen."""
MOST_ROWS = 64
"""Rows of a tile whose lines wait in a buffer. Chosen."""
KEPT_LINES = 1
"""More lines of a row do not wait in a buffer: how many are full differs by one, which processors
guess wrongly. Measured."""
STAGE_BYTES = 32 << 10
"""Private memory in which a run, or lines of rows, are collected: it has to stay in the nearest
cache. Published."""

# --- which schedules are looked at ----------------------------------------------------------------

AHEAD_BYTES = 8 << 10
"""How far ahead the prefetch runs, in bytes that tiles read, where caches do not hold all; twice as
far where each tile is in other rows, half of what the nearest cache holds, or four tiles. Measured
on a Zen 3, PoCL and Intel's runtime, 62 random reorders whose tiles read 0.5 to 2 KB: 0.97 and 0.98
of the time with 16 KB, 0.74 at best. Measured on a Zen 4, tiles of 6 KB, as 25 elements of 64
filters: with 4 ahead 0.82 to 0.96 of the time of 16.
"""
MOST_AHEAD = 16
"""The same in tiles, at the most. Fitted."""
PAGES_AHEAD = 64
"""Pages that the prefetch may be ahead where each tile is in others: as many as the first level of
the TLB has places for. Published. Measured on a Zen 4, bf16 3x3 `yxio` to `oyxi`, 2,000 outputs,
whose tiles read 32 rows of 64 bytes in 31 pages: 0.56 of a copy with 16 tiles ahead, 0.75 with two.
"""
ASKED_LINES = 24
"""Lines that a tile asks for at once, at most; others are asked for between its statements. A core
fetches so many at a time, and reads wait for their turn. Measured on a Zen 4, PoCL and Intel's
runtime (AVX2): 16 tiles of 64 lines and more take 0.90 of the time, 0.54 at best; 38 of 25 to 49
take 0.99."""
BLOCKS = (4, 16)
"""Tiles of a block of the last loop but one. Chosen."""
ITEM_BYTES = 32 << 10
"""What a work-item moves at the least; there are up to `ITEMS` of them for each core. Fitted."""
ITEMS = 16
"""See `ITEM_BYTES`: cores of unequal speed finish together. Fitted."""
UNUSUAL = 1.05
"""What another tile than that of most problems must gain: each is a program to compile. Chosen."""
PROGRAMS, EACH = 6, 4
"""How many tiles and stores are worth a measurement, and how many nests and prefetches of each.
Chosen."""
LEADS = (0, 1, 2, 4, 8, 16, 32, 64)
"""How far ahead the neighbours of a schedule prefetch. Chosen."""
NEAR = 24
"""How many neighbours of the best value are worth a measurement. Chosen."""

# --- tiles of GPUs' work-groups -------------------------------------------------------------------

SECTOR_BYTES = 32
"""The least that memory gives: a run that both sides share and that is this long is coalesced
without local memory. Published: NVIDIA's sector, half a line of AMD's."""
GPU_LINE_BYTES = 128
"""What stores of neighbours must fill together where a work-item stores several vectors apart.
Published."""
VECTOR_BYTES = 16
"""The longest load that a work-item can make. Published."""
BANKS, BANK_BYTES = 32, 4
"""Local memory has so many banks, and gives a word of each in one turn. Published."""
MOVED_A_TURN, MOST_TURNS = 16, 0.65
"""Bytes that memory moves for a multiprocessor in a turn of its banks, and the turns that may be
taken meanwhile. Published: 15 bytes of an H100, 20 of an H200. Measured on an H200: bytes of
images, `byxf` to `bfyx`, take 0.77 of the time with 0.6 or 0.3 turns instead of 1.1."""
IN_STEP = 32
"""Work-items that access local memory together. Published: NVIDIA's warp; AMD's 64 go in halves."""
GAPS = (1, 2, 4, 8, 16)
"""Words between rows of a tile in local memory that are tried. Chosen."""
MUCH_SOONER = 2
"""How many times fewer turns of the banks gaps have to need that part vectors. Measured on an H200:
3 x 3 weights of s8 to `os_is_yx_osv16_isv4` have 0.94 of a copy with gaps of whole vectors, and
0.83 with gaps of 8 bytes, for two thirds of the turns."""
SHORT_LOOP = 16
"""Channels of an image, taps of a 3x3 window: a loop of so few steps fills no run by itself.
Chosen."""
WHOLE_LOOP = 32
"""Steps of a loop that is no power of two, of which a tile has all where the run goes on after it:
windows of 5x5 and 17 channels. Chosen."""
NEIGHBOURS_BYTES = 64
"""Runs that begin no further apart share what memory gives at once, or nearly so: a tile has
several of them. Chosen: two sectors."""
LARGE_TENSOR = 16 << 20
"""Bytes read and written from which on a tile has sizes that leave few of its places empty. Chosen:
such sizes follow from those of the tensor, so that fewer tensors share a program."""
FEW_OF_BLOCK = 4
"""Places of blocks for each element, from which on a tile has loops of each side although neither
has the elements side by side. Chosen by what NVIDIA's compiler makes: 3 channels in blocks of 16
take 3.5 instructions a byte so, and 8.5 by common loops; 17 in blocks of 8 take 5.2 and 2.6."""
MOST_PLACES = 1.4
"""Places of the tiles along a loop for each of its steps, at the most. Chosen."""
LEAST_STORED = 2048
"""Bytes of a run, at the least, for which vectors are stored that begin anywhere. Chosen: its ends
are stored one by one, while the work-items in step wait; in shorter runs neighbours store single
elements."""
MOST_STEPS = 256
"""Elements that a work-item moves in a tile that is chosen, at the most. Chosen."""
MOST_TALL = 8
"""Rows of elements of less than a byte that share scales, and a work-item stores together. Measured
by NVIDIA's compiler for sm_90: u4 to f16 with scales and zero points has 16.7 instructions an
element, 18.4 with 4, 25.4 with 1."""
SHARED_BY, MOST_SHARED = 8, 512
"""Elements of a tile that share a value of another tensor, such as a scale, for which the tile's
values go through local memory; and how many values at the most. Chosen: a vector of the destination
has 8 elements of 16 bits."""
MOST_HELD = 32
"""Words that a work-item holds while they trade elements, at the most. Chosen."""
VECTORS_EACH = 2
"""Vectors that a work-item of a copy moves, where there is enough to do. Measured on an H100: 0.02
faster than with 4; 8 lose 0.04."""
GROUP_RUN_BYTES = 256
"""The run of a tile on each side where the tensor is large. Measured on an H100: copies whose runs
of 64, 128, 256 and 512 bytes lie apart in the destination have 0.68, 0.94, 1 and 1 of the speed; in
the source 0.82, 0.97, 1 and 1."""
RUN_ELEMENTS = (32, 128)
"""The least and the most elements of a run, however wide they are. Chosen."""
TILE_BYTES = 16384
"""A tile in local memory, if there are enough of them. A work-item moves 64 bytes of it. Chosen."""
SINGLE_TILE_BYTES = 8192
"""The same where elements are loaded one by one. Measured on an H100: bfyx to fsv32 of u8 with odd
sizes has 0.86 of a copy so and 0.77 with tiles twice as large; bfyx to byxf of f32 0.97 and 0.93.
"""
LARGEST_TILE_BYTES = 28 << 10
"""A tile in local memory at the most, where blocks that do not divide each other are taken whole:
with gaps it has 32 KB. Chosen: OpenCL promises as much."""
LARGER_TILES = 1.25
"""How much larger a tile may be for that: of 9 times a power of two it has 18 KB, not half of that.
Chosen: eight groups of an H100's multiprocessor have 28 KB each."""
SHIFTED_BLOCKS = 4
"""Blocks of the source in a tile, at the least, where it begins inside one: one more is loaded.
Chosen."""
SMALL_RUN_BYTES, SMALL_RUN_ELEMENTS, SMALL_TILE_BYTES = 128, (32, 64), 4096
"""The same three for tensors that would not fill the device so. Chosen."""
GROUPS_PER_UNIT = 4
"""Work-groups for each multiprocessor that are better than longer ones. Chosen."""
RUNS = (256, 128, 512, 64)
"""Bytes of a run that are worth a measurement, the rules' first. Chosen."""
TILE_SIZES = (16 << 10, 8 << 10, 32 << 10, 4 << 10)
"""Bytes of a tile in local memory that are. Chosen."""
GROUP_SIZES = (256, 128, 64, 512)
"""Work-items of a group that are. Chosen."""
TILES_TRIED, CHANGES_TRIED = 12, 11
"""How many tiles are measured beside that of the rules; how many changes of it. Chosen."""

# --- other families -------------------------------------------------------------------------------

GROUP_ITEMS = 64
"""The size of work-groups whose work-items take one element each. Chosen."""
GENERIC_GROUPS = (1, 8, 16, 32, 64, 128, 256)
"""Others that are worth a measurement. Chosen."""
ITEMS_PER_UNIT = 4
"""Work-items per core, at the least, so that cores of unequal speed finish together. Chosen."""
GENERIC_RUN = 512
"""The most elements of a work-item. Measured: 64 are three quarters as fast, 4096 are no faster."""
SUM_LANES = 64
"""The most lanes of a vector of sums. Chosen."""
SUM_CUTS = (64, 16)
"""The lengths of vectors that are cut of a size that is no block's: few, as each is a program.
Chosen."""
MANY_SUMS = 4096
"""From this many work-items on there are enough groups of `GROUP_ITEMS` for all cores. Chosen."""
WINDOWS = 16
"""Windows of a run on a CPU: for single windows index divisions cost more than the transform.
Measured."""
