#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# An upgrade from the current schema, here 1, to a fictitious schema 2, while a
# server for schema 1 runs.  If the migration is marked as compatible, requests
# succeed in open and new sessions, before and after the next reload.  Functions
# keep their OIDs, whether they are changed or not.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ build_dir root slurp spew /;

use POSIX ();
use Time::HiRes qw/ sleep /;

my $t = Test::Xet->new(workers => 2, log => 'info', timeout => 600);

$t->run();

my $data = mix(5, 600000);
my $file = $t->upload($data, xorb_chunks => 4);
my $sql = $t->dir() . '/sql';
my $text = slurp(build_dir() . '/sql/functions.sql');
my ($one) = sort { $b <=> $a } map { m!/0*(\d+)_[^/]+\z! }
	glob(build_dir() . '/sql/0*.sql');
my ($two, $three) = ($one + 1, $one + 2);

mkdir($sql) or die "$sql: $!\n";
system('cp', '-r', glob(build_dir() . '/sql/*.sql'), $sql) == 0 or die "cp\n";

# the version in the module's source

is((slurp(root() . '/src/http/pg/ngx_http_xet_pg_session.h')
	=~ /NGX_HTTP_XET_SCHEMA\s+"(\d+)"/)[0], $one, 'the version');

# --------------------------------------------------------------------------
# four processes send requests of all kinds, each one after the other

my ($in, @pids) = clients();

# a release without a migration, in which only functions change: first no
# function, then some functions repeatedly

my %was = functions();
my $rounds = 12;

spew("$sql/functions.sql", "$text\n-- a comment\n");
is(migrate()->{code}, 0, 'functions: applied again');
is_deeply({ functions() }, \%was, 'functions: no OID changes');

for my $round (1 .. $rounds) {
	spew("$sql/functions.sql", changed("round $round"));

	my $r = migrate();

	is($r->{code}, 0, "functions: round $round") or diag($r->{err});
}

is_deeply({ functions() }, \%was, 'functions: the same OIDs');
like(source('xorb_put'), qr/-- round $rounds$/m, 'functions: replaced');

# schema 2: a column that is unknown to the server for schema 1, filled by a
# trigger; a table; and functions that use them.  Three nodes migrate at the
# same time.

spew(migration($two, 'next'), <<"EOF_SQL");
-- compatible from $one

ALTER TABLE xet.files ADD COLUMN terms integer NOT NULL DEFAULT 0;

UPDATE xet.files SET terms = term_count;

CREATE TABLE xet.seen (
    file_id  bigint PRIMARY KEY REFERENCES xet.files ON DELETE CASCADE
);

CREATE FUNCTION xet.files_next()
    RETURNS trigger
    LANGUAGE plpgsql
AS \$\$
BEGIN
    NEW.terms := NEW.term_count;

    RETURN NEW;
END;
\$\$;

CREATE TRIGGER next BEFORE INSERT ON xet.files
    FOR EACH ROW EXECUTE FUNCTION xet.files_next();
EOF_SQL

$text .= <<'EOF_SQL';

CREATE FUNCTION xet.files_seen()
    RETURNS bigint
    LANGUAGE sql
AS $$
    INSERT INTO xet.seen (file_id) SELECT f.id FROM xet.files f
     WHERE f.terms = f.term_count
        ON CONFLICT DO NOTHING;

    SELECT count(*) FROM xet.seen;
$$;
EOF_SQL

spew("$sql/functions.sql", changed('schema 2'));

my @runs = map { migrate_start() } 1 .. 3;
my @results = map { xet_wait($_) } @runs;

is(join(' ', map { $_->{code} // '' } @results), '0 0 0', 'schema 2')
	or diag(map { $_->{err} } @results);
is(join('', map { $_->{out} } @results),
	sprintf("%04d_next.sql\nfunctions.sql\n", $two),
	'schema 2: several at once, applied once');
is($t->sql('SELECT max(version), max(compatible_from) FROM xet.migrations'),
	"$two|$one", 'schema 2: compatible');
like(source('xorb_put'), qr/-- schema 2$/m, 'schema 2: functions');
is($t->sql('SELECT xet.files_seen() > 0'), 't', 'schema 2: a new function');

# the server still works: it stores a new file in open sessions

my $new = $t->upload(mix(6, 400000), xorb_chunks => 4);

is_deeply($t->download($new->{hash}, size => 400000)->{errors}, [],
	'schema 2: a new file');
is($t->sql('SELECT count(*) FROM xet.files WHERE terms <> term_count'), 0,
	'schema 2: its new column');

# one function gets another signature, and one is removed; modules do not call
# these functions

$text =~ s/files_seen\(\)\n/files_seen(n bigint DEFAULT 7)\n/;
$text =~ s/SELECT count\(\*\) FROM xet\.seen/SELECT n/;
spew("$sql/functions.sql", $text);
is(migrate()->{code}, 0, 'called in another way');
is($t->sql('SELECT xet.files_seen()'), 7, 'called in another way: once');

$text =~ s/\nCREATE FUNCTION xet\.files_seen.*//s;
spew("$sql/functions.sql", $text);
is(migrate()->{code}, 0, 'gone');
is($t->sql("SELECT count(*) FROM pg_proc WHERE proname = 'files_seen'"), 0,
	'gone: it is');

# new sessions of the workers, and new workers

$t->reload();
ok(wait_for(60, sub { $t->get('/api/health')->{status} == 200 }),
	'compatible: a reload');

my ($done, $failed) = ended($in, @pids);

cmp_ok($done, '>', 20, 'requests');
is($failed, '', 'none has failed');

is($t->pg_terminate() > 0, 1, 'all sessions are ended');
ok(wait_for(60, sub { $t->get('/api/health')->{status} == 200 }),
	'compatible: new sessions');
$t->allow(qr/PostgreSQL/);
is_deeply($t->download($file->{hash}, size => length($data))->{errors}, [],
	'compatible: a file');

# --------------------------------------------------------------------------
# refused: a migration that was changed, and the migrations folder of an older
# release

my $next = migration($two, 'next');
my $was = slurp($next);

spew($next, "$was-- more\n");
like(migrate()->{err}, qr/_next\.sql: was changed after/, 'changed: refused');
spew($next, $was);
is(migrate()->{code}, 0, 'changed back');

my $functions = 'SELECT sha256 FROM xet.migrations WHERE version = 0';
my $sum = $t->sql($functions);
my $r = xet(undef, { env => { XET_POSTGRES => $t->conninfo() } }, 'migrate',
	'--sql', build_dir() . '/sql');

is($r->{code}, 1, 'an older folder');
like($r->{err}, qr/_next\.sql: is applied, but unknown to this version/,
	'an older folder: what it says');
is($t->sql($functions), $sum, 'an older folder: changes nothing');

# --------------------------------------------------------------------------
# a migration that is not compatible, and one that is compatible with schema 2
# and later

spew(migration($three, 'other'), 'CREATE TABLE xet.other ();');
is(migrate()->{code}, 0, 'not compatible');
is($t->get('/api/health')->{status}, 200, 'not compatible: sessions stay');
$t->pg_terminate();
ok(wait_for(60, sub { $t->get('/api/health')->{status} == 503 }),
	'not compatible: no new session');
ok($t->wait_log(qr/has another version than this module needs/),
	'not compatible: why');

$t->sql("UPDATE xet.migrations SET compatible_from = $two"
	. " WHERE version = $three");
$t->pg_terminate();
sleep(1);
is($t->get('/api/health')->{status}, 503, 'compatible with others');

$t->sql("UPDATE xet.migrations SET compatible_from = $one"
	. " WHERE version = $three");
ok(wait_for(60, sub { $t->get('/api/health')->{status} == 200 }),
	'compatible with this one');

# a database that is older than the module is still refused

$t->sql("DELETE FROM xet.migrations WHERE version >= $one");
$t->pg_terminate();
ok(wait_for(60, sub { $t->get('/api/health')->{status} == 503 }), 'older');

$t->done();

# --------------------------------------------------------------------------

sub migration {
	my ($number, $name) = @_;

	return sprintf('%s/%04d_%s.sql', $sql, $number, $name);
}

sub migrate_start {
	return xet_start(undef, { env => { XET_POSTGRES => $t->conninfo() } },
		'migrate', '--sql', $sql);
}

sub migrate { return xet_wait(migrate_start()) }

# Returns the functions, each with a comment added to its body.

sub changed {
	my ($comment) = @_;

	my $changed = $text =~ s/^(BEGIN\n)/$1    -- $comment\n/gmr;

	$changed =~ s/^(AS \$\$\n    (?:SELECT|WITH))/$1 -- $comment\n/gm;

	return $changed;
}

sub source {
	return scalar $t->sql("SELECT prosrc FROM pg_proc"
		. " WHERE proname = '$_[0]'");
}

# Returns the functions and their OIDs.

sub functions {
	return map { split(/ = /) } $t->sql("SELECT oid::regprocedure || ' = '"
		. " || oid FROM pg_proc WHERE pronamespace ="
		. " 'xet'::regnamespace");
}

sub clients {
	pipe(my $from, my $to) or die "pipe: $!\n";

	my @children;
	my $parent = $$;

	for my $n (1 .. 4) {
		my $pid = fork() // die "fork: $!\n";

		if ($pid) {
			push @children, $pid;
			next;
		}

		my $stop = 0;
		my $i = 0;

		alarm(0);

		local $SIG{TERM} = sub { $stop = 1 };

		while (!$stop && getppid() == $parent) {
			my $bytes = mix(1000 * $n + $i++, 20000);

			for my $do (
				sub { $t->put('/api/v1/files', \$bytes) },
				sub { $t->get('/api/v1/reconstructions/'
					. $file->{hash}) },
				sub { $t->get("/api/v1/files/$file->{hash}") },
				sub { $t->upload($bytes);
					{ status => 200, body => '' } },
			) {
				my $result = eval { $do->() };
				my $ok = $result && $result->{status} == 200
					&& !$result->{error};
				my $why = $ok ? 'ok' : $@ || "$result->{status}"
					. " $result->{body}";

				$why =~ s/\s+/ /g;
				syswrite($to, substr($why, 0, 200) . "\n");
			}
		}

		POSIX::_exit(0);
	}

	close($to);

	return ($from, @children);
}

sub ended {
	my ($from, @children) = @_;

	kill('TERM', @children);

	my ($n, $bad) = (0, '');

	while (my $line = <$from>) {
		$n++;
		$bad .= $line if $line ne "ok\n";
	}

	waitpid($_, 0) for @children;

	return ($n, $bad);
}
