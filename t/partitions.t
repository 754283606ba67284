#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# xet migrate --partitions: tables are cut into partitions and put together
# again while a server runs; rows, rights and numbers stay, what is broken off
# has changed nothing, and a hash has one row whoever puts it.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ root run_command spew wait_for /;

use POSIX ();

delete $ENV{XET_TEST_PARTITIONS};

my $t = Test::Xet->new(workers => 2, log => 'info');

$t->run();

my $pg = $t->pg();
my @hot = qw/ chunks file_xorbs files terms xorbs /;
my @files = map { $t->upload(mix($_, 400000), xorb_chunks => 3) } 1 .. 3;

# what does not come from uploads

$t->sql("CREATE ROLE reads; GRANT SELECT ON xet.xorbs, xet.files TO reads;"
	. " GRANT UPDATE (advertised_on) ON xet.xorbs TO reads;"
	. " GRANT DELETE ON xet.terms TO PUBLIC;"
	. " ALTER TABLE xet.xorbs SET (autovacuum_vacuum_scale_factor = 0.02);"
	. " INSERT INTO xet.terms SELECT id, 0, 9, repeat('x', 52)::bytea"
	. " FROM xet.files; UPDATE xet.store SET tables = xet.store_tables()");

my $schema = schema();
my $were = sums();

# --------------------------------------------------------------------------
# cut, cut otherwise, and one again

my $serial = $t->sql('SELECT last_value FROM xet.xorbs_id_seq');

for my $n (4, 3, 1, 2) {
	my $r = migrate($n);

	is($r->{code}, 0, "$n") or diag($r->{err});
	is($r->{out}, "partitions.sql\n", "$n: told");
	is(migrate($n)->{out}, '', "$n: once");
	is(migrate()->{out}, '', "$n: and it stays");

	my $leaves = $n > 1 ? $n : 0;

	is($t->sql("SELECT count(*) FROM pg_inherits WHERE inhparent ="
		. " 'xet.$_'::regclass"), $leaves, "$n: $_") for @hot;

	is(sums(), $were, "$n: the same rows");
	is($t->sql('SELECT last_value FROM xet.xorbs_id_seq'), $serial,
		"$n: ids go on");
	is($t->sql('SELECT xet.store_doubts()'), '', "$n: no other database");
	is($t->sql("SELECT string_agg(has_table_privilege('reads', 'xet.' || n,"
		. " 'SELECT')::text, ' ' ORDER BY n) FROM unnest(ARRAY['files',"
		. " 'terms', 'xorbs']) n"), 'true false true', "$n: rights");
	is($t->sql("SELECT has_column_privilege('reads', 'xet.xorbs',"
		. " 'advertised_on', 'UPDATE'), has_table_privilege('reads',"
		. " 'xet.xorbs', 'UPDATE'), has_table_privilege('reads',"
		. " 'xet.terms', 'DELETE')"), 't|f|t',
		"$n: and those of columns");
	is($t->sql("SELECT count(*) FROM pg_class WHERE reloptions::text ~"
		. " 'scale_factor=0.02'"), $n, "$n: settings");
	is($t->sql("SELECT count(*) FROM pg_constraint WHERE contype = 'f'"
		. " AND conparentid = 0 AND NOT convalidated"), 0, "$n: keys");

	is_deeply($t->download($files[$_]{hash}, size => 400000)->{errors}, [],
		"$n: file $_") for 0, 2;
	is($t->post('/api/v1/shards', \$files[0]{shard})->{status}, 200,
		"$n: a shard that is known");

	is(schema(), $schema, 'the schema that it was') if $n == 1;
}

for ('0', '129', 'x', '') {
	is(migrate($_)->{code}, 2, "'$_' is no number of partitions");
}

# --------------------------------------------------------------------------
# in two partitions

my $new = $t->upload(mix(9, 300000));

is($new->{result}, 1, 'a new file');
is($t->upload(mix(9, 300000))->{result}, 0, 'which is known then');
is($t->sql('SELECT count(*) FROM xet.xorb_names n JOIN xet.xorbs x'
	. ' ON x.id = n.id AND x.hash = n.hash'),
	$t->sql('SELECT count(*) FROM xet.xorbs'), 'names of xorbs');
is($t->sql('SELECT count(*) FROM xet.file_names n JOIN xet.files f'
	. ' ON f.id = n.id AND f.hash = n.hash'), 4, 'names of files');

# who puts a hash waits for who puts it, too, and has it where that one fails

for my $end (qw/ COMMIT ROLLBACK /) {
	my ($one, $two) = map { $t->pg_session() } 1 .. 2;
	my $put = "INSERT INTO xet.files (hash, size, term_count) VALUES"
		. " (sha256('$end'), 1, 1) ON CONFLICT DO NOTHING RETURNING 1";

	$one->run('BEGIN');
	is($one->run($put), 1, "$end: put");
	$two->send($put);
	ok(wait_for(10, sub { $t->pg_blocked('postgres') }), "$end: waits");
	$one->run($end);
	is($two->wait(10), $end eq 'COMMIT' ? '' : 1, "$end: the other one");
	is($t->sql('SELECT count(*) FROM xet.files WHERE hash ='
		. " sha256('$end')"), 1, "$end: one row");
	$_->close() for $one, $two;
}

# a hash is free as soon as its row is gone, or has it no more

$t->sql("UPDATE xet.files SET hash = NULL WHERE hash = sha256('COMMIT')");
$t->sql("DELETE FROM xet.files WHERE hash = sha256('ROLLBACK')");

for (qw/ COMMIT ROLLBACK /) {
	is($t->sql("SELECT xet.file_row(sha256('$_'))"), -1, "$_: free");
	is($t->sql("INSERT INTO xet.files (hash, size, term_count) VALUES"
		. " (sha256('$_'), 1, 1) ON CONFLICT DO NOTHING RETURNING 1"),
		1, "$_: put again");
}

ok(!eval { $t->sql("UPDATE xet.files SET hash = sha256('COMMIT')"
	. " WHERE hash = sha256('ROLLBACK')"); 1 }, 'two rows of one hash');
$t->sql("DELETE FROM xet.files WHERE size = 1");

# --------------------------------------------------------------------------
# a migration that comes later, on both forms; what it makes stays

my $sql = $t->dir() . '/sql';

mkdir($sql) or die "$sql: $!\n";
system('cp', '-r', glob(root() . '/sql/*.sql'), $sql) == 0 or die "cp\n";
spew("$sql/0999_next.sql", <<'EOF_SQL');
-- compatible from 14

ALTER TABLE xet.xorbs ADD COLUMN more integer NOT NULL DEFAULT 7;

CREATE INDEX xorbs_more ON xet.xorbs (more);

CREATE TABLE xet.more (
    xorb_id  bigint PRIMARY KEY REFERENCES xet.xorbs ON DELETE CASCADE
);

INSERT INTO xet.more SELECT x.id FROM xet.xorbs x;

CREATE FUNCTION xet.more() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO xet.more VALUES (NEW.id);
    RETURN NULL;
END;
$$;

CREATE TRIGGER more AFTER INSERT ON xet.xorbs
    FOR EACH ROW EXECUTE FUNCTION xet.more();
EOF_SQL

is(migrate(undef, $sql)->{out}, "0999_next.sql\n", 'a later migration');

for my $n (2, 1, 3) {
	is(migrate($n, $sql)->{code}, 0, "later: $n");
	is($t->upload(mix(20 + $n, 200000))->{result}, 1, "later: $n: a file");
	is($t->sql('SELECT count(*) FROM xet.more JOIN xet.xorbs ON xorb_id ='
		. ' id WHERE more = 7'),
		$t->sql('SELECT count(*) FROM xet.xorbs'),
		"later: $n: what it has made");
	is($t->sql("SELECT count(*) FROM pg_index WHERE indexrelid ="
		. " 'xet.xorbs_more'::regclass"), 1, "later: $n: an index");
}

# --------------------------------------------------------------------------
# broken off, and by whom it may not be done

$were = sums();

my $held = $t->pg_session();

$held->run('BEGIN');
$held->run('SELECT count(*) FROM xet.chunks');

my $pid = xet_start(undef, { env => { XET_POSTGRES => $t->conninfo() } },
	'migrate', '--sql', $sql, '--partitions', 5);

ok(wait_for(20, sub { $t->sql("SELECT count(*) FROM pg_stat_activity"
	. " WHERE wait_event = 'PgSleep'") }), 'waits for who reads');
is($t->upload(mix(50, 100000))->{result}, 1, 'and holds up nobody');
$were = sums();
$t->sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
	. " query ~ 'pg_temp.partition' AND pid <> pg_backend_pid()");
is(xet_wait($pid)->{code}, 3, 'broken off');
$held->close();

is(sums(), $were, 'broken off: the same rows');
is($t->sql("SELECT count(*) FROM pg_inherits WHERE inhparent ="
	. " 'xet.xorbs'::regclass"), 3, 'broken off: the same partitions');

my $other = xet(undef, { env => { XET_POSTGRES => $t->conninfo()
	=~ s/user=\w+/user=postgres/r } }, 'migrate', '--sql', $sql,
	'--partitions', 5);

is($other->{code}, 3, 'another role');
like($other->{err}, qr/the tables belong to xet, who has to do this/,
	'another role: why');

# what would be lost, or hangs on a table, is not

for ([ 'CREATE POLICY p ON xet.files', 'DROP POLICY p ON xet.files',
		qr/policies, rules or publications of files would be lost/ ],
	[ 'CREATE VIEW public.v AS SELECT hash FROM xet.xorbs',
		'DROP VIEW public.v', qr/other objects depend on it/ ])
{
	my ($make, $drop, $why) = @$_;

	$t->sql($make);

	my $r = migrate(5, $sql);

	is($r->{code}, 3, $make);
	like($r->{err}, $why, "$make: why");
	is(sums(), $were, "$make: the same rows");
	$t->sql($drop);
}

# --------------------------------------------------------------------------
# two at once, while files come and go

my ($in, $pids) = requests();
my @both = map { xet_start(undef, { env => { XET_POSTGRES => $t->conninfo() } },
	'migrate', '--sql', $sql, '--partitions', 6) } 1 .. 2;

is_deeply([ map { xet_wait($_)->{code} } @both ], [ 0, 0 ], 'two at once');
for my $n (1, 4) {
	my $r = migrate($n, $sql);

	is($r->{code}, 0, "and then $n") or diag($r->{err});
}

kill('TERM', @$pids);
my @answers = <$in>;
waitpid($_, 0) for @$pids;

cmp_ok(scalar @answers, '>', 10, 'requests meanwhile: ' . @answers);
cmp_ok(scalar(grep { /^200/ } @answers), '>', 5, 'are answered');
is(join('', grep { !/^(?:200|503)/ } @answers), '', 'or told to come again');
is_deeply($t->download($new->{hash}, size => 300000)->{errors}, [],
	'and a file');

$t->allow(qr/xet: .*PostgreSQL/);
$t->done();

# --------------------------------------------------------------------------

sub migrate {
	my ($n, $folder) = @_;

	return xet(undef, { env => { XET_POSTGRES => $t->conninfo() } },
		'migrate', '--sql', $folder // root() . '/sql',
		defined $n ? ('--partitions', $n) : ());
}

# All rows of the tables, whatever their order.

sub sums {
	return join(' ', $t->sql(join(' UNION ALL ', map {
		"SELECT '$_ ' || count(*) || ' ' || coalesce(md5(string_agg("
		. "md5(r::text), '' ORDER BY md5(r::text))), '') FROM xet.$_ r"
	} @hot, qw/ charges gc_xorbs gc_files repo_files /)));
}

sub schema {
	my (undef, $out) = run_command([ "$pg->{bin}/pg_dump", '-s',
		'-h', $pg->socket_dir(), '-U', 'postgres', '-n', 'xet',
		'xet' ]);

	return join('', grep { !/^(?:--|\\|$)/ } split(/^/m, $out));
}

# Files that are sent and read, by two processes, until they are told.

sub requests {
	pipe(my $from, my $to) or die "pipe: $!\n";

	my @children;
	my $parent = $$;

	for my $n (1 .. 2) {
		my $child = fork() // die "fork: $!\n";

		if ($child) {
			push @children, $child;
			next;
		}

		my ($stop, $i) = (0, 0);

		alarm(0);

		local $SIG{TERM} = sub { $stop = 1 };

		while (!$stop && $i < 2000 && getppid() == $parent) {
			my $bytes = mix(1000 * $n + $i++, 20000);

			for my $r ($t->put('/api/v1/files', \$bytes),
				$t->get("/api/v1/files/$new->{hash}"))
			{
				syswrite($to, "$r->{status} "
					. ($r->{error} // '') . "\n");
			}
		}

		POSIX::_exit(0);
	}

	close($to);

	return ($from, \@children);
}
