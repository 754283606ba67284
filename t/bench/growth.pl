#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures lookups and registrations while the tables grow.  Each step has ten
# times as many rows in the dedup index as the previous one, and a thousandth of
# that number of xorbs and of files.  The statements are those of the module,
# sent in the same way as by its sessions.  Only PostgreSQL is measured: its CPU
# microseconds per statement, then the client's median waiting time.
#
#     perl t/bench/growth.pl [to [from]]
#
# The default is 1e5 to 1e8 rows, which needs 18 GB of disk and up to 15
# minutes; after 15 minutes the script stops with the results so far.  Needs
# "make cli" and pgbench.

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
die "too little room in $dir\n" if $free < 250 * $most + 2e9;

my %sql = map { $_->{name} => $_->{sql} } @{ module_table('statements') };

my @rows = [ 'chunk rows', 'dedup: found', 'not found',
	'reconstruction', 'xorb put', 'chunk rows/s', 'table, MB',
	'indexes, MB' ];

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

	my $fill = time();

	fill($n);
	sleep(choose(2, 0.5));   # the end of a session takes CPU time, too
	printf("%.0e rows: filled in %.0f s\n", $n, time() - $fill);

	my ($table, $indexes) = split(/\|/, $pg->sql('SELECT'
		. ' round(sum(pg_table_size(c.oid)) / 1e6, 1),'
		. ' round(sum(pg_indexes_size(c.oid)) / 1e6, 1) FROM pg_class c'
		. " WHERE c.relkind = 'r' AND c.relnamespace ="
		. " 'xet'::regnamespace AND c.relname ~ '^chunks'"));

	my $x = xorbs($n);
	my $call = sub { $sql{$_[0]} =~ s/\$(\d+)/$_[$1]/gr };

	my $found = bench($n, $call->('chunk_find',
		'sha256(int8send((:n)::bigint))', 'false', 'true', "''", 'NULL::bytea'));
	my $missing = bench($n, $call->('chunk_find',
		'sha256(int8send(-(:n)::bigint))', 'false', 'true', "''", 'NULL::bytea'));
	my $terms = bench($x, $call->('file_terms_all',
		"sha256('f' || int8send((:n)::bigint))", '0', '1000000'));

	# a xorb of 100 chunks, ten of which are in the index

	my $put = bench(2 ** 62, <<'EOF_SQL');
SELECT p.* FROM (
    SELECT string_agg(sha256(int8send((:n)::bigint + i)), ''::bytea) AS hashes,
           string_agg(int4send(i), ''::bytea) AS ends
      FROM generate_series(1, 100) i
) l, LATERAL xet.xorb_put(sha256(int8send((:n)::bigint)), l.hashes, l.ends,
    l.ends, 400000, 400000, '{0,10,20,30,40,50,60,70,80,90}'::integer[], 9,
    decode(repeat('bb', 16), 'hex'), true, '', NULL) p
EOF_SQL

	push @rows, [ sprintf('10^%d', POSIX::floor(log($n) / log(10) + 0.5)),
		map({ sprintf('%.0f, %.0f', @$_) } $found, $missing, $terms, $put),
		sprintf('%.0f', 1e7 / $put->[0]), $table, $indexes ];

	bench_table(@rows[0, -1]);

	@{ $us{$n} }{'dedup, found', 'dedup, not found', 'reconstruction',
		'xorb put'} = map { $_->[1] } $found, $missing, $terms, $put;
	$bytes = 1e6 * ($table + $indexes) / $n;
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

sub xorbs { return $_[0] / 1000 }

# Inserts all rows of a step.  Triggers and foreign keys are disabled, because
# the referenced rows exist.  If a transaction truncates a table before it fills
# it, no WAL is needed.

sub fill {
	my ($n) = @_;

	my $x = xorbs($n);

	$pg->sql(<<"EOF_SQL", timeout => 800);
SET session_replication_role = replica;
BEGIN;
TRUNCATE xet.xorbs, xet.files, xet.file_xorbs, xet.chunks CASCADE;
ALTER TABLE xet.chunks DROP CONSTRAINT chunks_pkey;
DROP INDEX xet.chunks_xorb;
INSERT INTO xet.xorbs (id, hash, chunk_count, raw_size, stored_size,
                       chunk_hashes, raw_ends, stored_ends)
OVERRIDING SYSTEM VALUE
SELECT i, sha256('x' || int8send(i)), 100, 400000, 400000, l.hashes, l.ends,
       l.ends
  FROM generate_series(1, $x) i, (
           SELECT string_agg(sha256(int8send(k)), ''::bytea) AS hashes,
                  string_agg(int4send(k), ''::bytea) AS ends
             FROM generate_series(1, 100) k
       ) l;
SELECT setval('xet.xorbs_id_seq', $x);
INSERT INTO xet.files (id, hash, size, term_count, packed)
OVERRIDING SYSTEM VALUE
SELECT i, sha256('f' || int8send(i)), 400000, 20,
       decode(repeat(encode(sha256('x' || int8send(i)), 'hex')
                     || repeat('00', 20), 20), 'hex')
  FROM generate_series(1, $x) i;
INSERT INTO xet.file_xorbs SELECT i, i, '{[0,100)}'
  FROM generate_series(1, $x) i;
INSERT INTO xet.chunks
SELECT sha256(int8send(i)), i % $x + 1, 0
  FROM generate_series(1::bigint, $n) i;
ALTER TABLE xet.chunks ADD CONSTRAINT chunks_pkey PRIMARY KEY (hash, xorb_id);
CREATE INDEX chunks_xorb ON xet.chunks (xorb_id);
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
