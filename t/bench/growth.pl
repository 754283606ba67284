#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures statements while a store grows.  Each step has ten times as many
# chunks as the previous one, in xorbs of 1,000 chunks; a file for each ten
# chunks, and a repo for each ten files.  The dedup index has the first chunk of
# each file, and one more of each xorb.  The statements are those of the module,
# sent in the same way as by its sessions.  Only PostgreSQL is measured: its CPU
# microseconds per statement, then the client's median waiting time.
#
# Also prints the bytes of PostgreSQL per chunk, in the last step, and for files
# of 10,000 chunks, of which a model consists.
#
#     perl t/bench/growth.pl [to [from]]
#
# The default is 1e5 to 1e8 chunks, which needs 30 GB of disk; after 15 minutes
# the script stops with the results so far.  Needs "make cli" and pgbench.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use File::Temp qw/ tempdir /;
use POSIX ();
use Time::HiRes qw/ sleep time /;

use Test::Xet::Postgres;
use Test::Xet::Process qw/
	children cmdline module_table run_command slurp spew
/;

my $most = shift // choose(1e8, 1e4);
my $least = shift // choose(1e5, 1e3);
my $seconds = 900;

POSIX::nice(10);

my $dir = tempdir('xt-XXXXXX', DIR => $ENV{TMPDIR} // '/tmp', CLEANUP => 1);
my $began = time();

chmod(0755, $dir);

my ($free) = `df -P -B 1 $dir` =~ /\s(\d+)\s+\d+%/;
die "too little room in $dir\n" if $free < 300 * $most + 2e9;

my %sql = map { $_->{name} => $_->{sql} } @{ module_table('statements') };

my @rows = [ 'chunks', 'files', 'repos', 'dedup: found', 'not found',
	'reconstruction', 'xorb put', 'bytes a chunk' ];

my (%us, $bytes);
my @steps = grep { $_ >= $least && $_ <= $most } map { 10 ** $_ } 3 .. 8;
my $pg = cluster();

for my $n (@steps) {
	my $done = eval {
		local $SIG{ALRM} = sub { die "time\n" };

		alarm(POSIX::floor($seconds - time() + $began) || 1);
		step($n);
		alarm(0);
		1;
	};

	next if $done;

	alarm(0);
	print "$n rows: not done: $@";
	last;
}

bench_table(@rows);
rows();
printf("%d s\n", time() - $began);

$pg->kill();

# --------------------------------------------------------------------------

# For each statement, how much longer it takes with the most rows than with the
# fewest.

sub rows {
	my ($first, @more) = sort { $a <=> $b } keys %us;

	for my $what ($first ? sort keys %{ $us{$first} } : ()) {
		for my $n ($first, @more) {
			bench_row(sprintf('growth: %s, 10^%.0f', $what,
				log($n) / log(10)), $us{$n}{$what}, 'us, p50',
				'the fewest rows', $us{$n}{$what}
				/ $us{$first}{$what}, $n == $first ? undef : 1.3,
				'less');
		}
	}

	bench_row('growth: bytes of PostgreSQL a chunk', $bytes, 'bytes', undef,
		undef, 60, 'less') if $first;
}

sub step {
	my ($n) = @_;

	my $began = time();

	fill($n, 10);
	sleep(choose(2, 0.5));   # the end of a session takes CPU time, too
	printf("%.0e chunks: filled in %.0f s\n", $n, time() - $began);

	my $size = stored() / $n;
	my $call = sub { $sql{$_[0]} =~ s/\$(\d+)/$_[$1]/gr };
	my ($files, $repos) = ($n / 10, $n / 100);

	# a caller asks for a chunk of a file in the repo of its token

	my @who = ('false', 'false', "'r' || (:n - 1) / 10 + 1", 'NULL::bytea');

	my $found = bench($files, $call->('chunk_find',
		"sha256('c' || int8send((:n - 1) / 100 * 1000"
		. ' + (:n - 1) % 100 * 10))', @who));
	my $missing = bench($files, $call->('chunk_find',
		"sha256('m' || int8send(:n))", @who));
	my $terms = bench($files, $call->('file_terms_all',
		"sha256('f' || int8send(:n))", '0', '1000000'));

	# a xorb of 1,000 chunks, one of which is in the index

	my $put = bench(2 ** 62, <<'EOF_SQL');
SELECT p.* FROM (
    SELECT x.chunk_hashes AS hashes, x.raw_ends AS ends FROM xet.xorbs x
     WHERE x.id = 1
) l, LATERAL xet.xorb_put(sha256(int8send((:n)::bigint)),
    sha256(int8send((:n)::bigint)) || substr(l.hashes, 33), l.ends, l.ends,
    64000000, 64000000, '{0}'::integer[], 9,
    decode(repeat('bb', 16), 'hex'), true, '', NULL) p
EOF_SQL

	push @rows, [ sprintf('10^%d', POSIX::floor(log($n) / log(10) + 0.5)),
		$files, $repos,
		map({ sprintf('%.0f, %.0f', @$_) } $found, $missing, $terms, $put),
		sprintf('%.0f', $size) ];

	bench_table(@rows[0, -1]);

	@{ $us{$n} }{'dedup, found', 'dedup, not found', 'reconstruction',
		'xorb put'} = map { $_->[0] } $found, $missing, $terms, $put;

	return if $n < $steps[-1];

	fill($n = choose(1e6, 1e4), 10_000);
	$bytes = stored() / $n;
	printf("files of 10,000 chunks: %.1f bytes a chunk\n", $bytes);
}

# Returns the bytes of all tables of the schema, with their indexes.

sub stored {
	return $pg->sql('SELECT sum(pg_total_relation_size(c.oid))'
		. " FROM pg_class c WHERE c.relkind = 'r'"
		. " AND c.relnamespace = 'xet'::regnamespace");
}

sub cluster {
	my $pg = Test::Xet::Postgres->new(dir => "$dir/pg", conf => <<'EOC');
shared_buffers = 1GB
maintenance_work_mem = 1500MB
max_parallel_maintenance_workers = 1
wal_level = minimal
max_wal_senders = 0
max_wal_size = 4GB
autovacuum = off
EOC

	$pg->start();

	return $pg;
}

# Inserts all rows of a step, with files of so many chunks.  The chunks of file
# f are those of xorb (f - 1) / 100 from 10 * ((f - 1) % 100) on, and its repo
# is (f - 1) / 10; larger files use whole xorbs.  Triggers and foreign keys
# are disabled, because the referenced rows exist.  If a transaction truncates a
# table before it fills it, no WAL is needed.

sub fill {
	my ($n, $chunks) = @_;

	my ($xorbs, $files) = ($n / 1000, $n / $chunks);
	my $repos = POSIX::ceil($files / 10);
	my $terms = $chunks > 1000 ? $chunks / 1000 : 1;
	my $span = $chunks / $terms;
	my $each = 1000 / $span;              # files of a xorb

	$pg->sql(<<"EOF_SQL", timeout => 800);
SET session_replication_role = replica;
BEGIN;
TRUNCATE xet.xorbs, xet.chunks, xet.charges, xet.xorb_repos,
         xet.xorb_subjects, xet.files, xet.file_xorbs, xet.repos,
         xet.repo_files, xet.hub_loose RESTART IDENTITY CASCADE;
INSERT INTO xet.xorbs (id, hash, chunk_count, raw_size, stored_size,
                       chunk_hashes, raw_ends, stored_ends, digest)
OVERRIDING SYSTEM VALUE
SELECT i, sha256('x' || int8send(i)), 1000, 64000000, 64000000,
       (SELECT string_agg(sha256('c' || int8send(i * 1000 - 1000 + k)), '')
          FROM generate_series(0, 999) k),
       l.ends, l.ends, substr(sha256('d' || int8send(i)), 1, 16)
  FROM generate_series(1::bigint, $xorbs) i, (
           SELECT string_agg(int4send(k), ''::bytea) AS ends
             FROM generate_series(1, 1000) k
       ) l;
SELECT setval('xet.xorbs_id_seq', $xorbs + 1);
INSERT INTO xet.files (id, hash, size, term_count, packed, sha256)
OVERRIDING SYSTEM VALUE
SELECT i, sha256('f' || int8send(i)), 64000 * $chunks, $terms,
       (SELECT string_agg(sha256('x' || int8send(x))
                          || decode(repeat('00', 20), 'hex'), '')
          FROM generate_series((i - 1) * $terms / $each + 1,
                               ((i - 1) * $terms + $terms - 1) / $each + 1) x),
       sha256('s' || int8send(i))
  FROM generate_series(1::bigint, $files) i;
INSERT INTO xet.file_xorbs (file_id, xorb_id, chunks)
SELECT i, x, int4multirange(int4range(((i - 1) % $each * $span)::integer,
                                      ((i - 1) % $each * $span
                                       + $span)::integer))
  FROM generate_series(1::bigint, $files) i,
       generate_series((i - 1) * $terms / $each + 1,
                       ((i - 1) * $terms + $terms - 1) / $each + 1) x;
INSERT INTO xet.repos (id, name) OVERRIDING SYSTEM VALUE
SELECT i, 'r' || i FROM generate_series(1::bigint, $repos) i;
INSERT INTO xet.repo_files (repo_id, file_id, subject, sha256)
SELECT (i - 1) / 10 + 1, i, sha256('u'), sha256('s' || int8send(i))
  FROM generate_series(1::bigint, $files) i;
INSERT INTO xet.xorb_repos (xorb_id, repo_id)
SELECT DISTINCT fx.xorb_id, rf.repo_id
  FROM xet.file_xorbs fx JOIN xet.repo_files rf USING (file_id);
INSERT INTO xet.chunks (hash, xorb_id, idx)
SELECT sha256('c' || int8send((x - 1) * 1000 + k)), x, k
  FROM generate_series(1::bigint, $xorbs) x,
       LATERAL (SELECT k FROM generate_series(0, 999, $span) k
                UNION SELECT 1) k;
COMMIT;
ANALYZE;
CHECKPOINT;
EOF_SQL
}

# Returns the CPU time and the median waiting time, in microseconds, of a
# statement that one session repeats for three seconds.  :n is a random number
# from 1 to n.

sub bench {
	my ($n, $statement) = @_;

	system('rm', '-f', glob("$dir/times.*"));
	spew("$dir/script", "\\set n random(1, $n)\n"
		. ($statement =~ s/\s+/ /gr) . ";\n");

	my $before = ticks();
	my ($status, $out) = run_command([ "$pg->{bin}/pgbench", '-n',
		'-M', 'prepared', pgbench_length(3), '-l', "--log-prefix=$dir/times",
		'-f', "$dir/script", '-h', $pg->socket_dir(), '-U', 'xet',
		'xet' ], timeout => 60, env => { PGOPTIONS => join(' ',
			map { "-c $_" } qw/ enable_seqscan=off jit=off
			enable_bitmapscan=off
			plan_cache_mode=force_generic_plan /) });

	die "pgbench: $out\n" if $status;

	my @times = map { (split(' '))[2] } map { split(/\n/, slurp($_)) }
		glob("$dir/times.*");

	return [ (ticks() - $before) * 10000 / @times, median(@times) ];
}

# Waits until all sessions have ended, then returns their CPU ticks so far (100
# per second).

sub ticks {
	# an exiting process has an empty command line

	sleep(0.1) while grep { cmdline($_) =~ /\A(?:\z|.*\[local\])/ }
		children($pg->pid());
	sleep(0.3);

	my @fields = split(' ', slurp("/proc/" . $pg->pid() . '/stat')
		=~ s/.*\) //sr);

	return $fields[13] + $fields[14];
}
