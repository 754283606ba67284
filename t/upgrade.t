#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A migration while workers of the version before it run: requests go on, in
# sessions of before and in new ones, until the next reload and after it, if the
# migration says that it is compatible; a function that has not changed keeps
# its identity, and one that has is replaced in its place.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ root slurp spew /;

use POSIX ();
use Time::HiRes qw/ sleep /;

my $t = Test::Xet->new(workers => 2, log => 'info', timeout => 600);

$t->run();

my $data = mix(5, 600000);
my $file = $t->upload($data, xorb_chunks => 4);
my $sql = $t->dir() . '/sql';
my $text = slurp(root() . '/sql/functions.sql');
my ($last) = sort { $b <=> $a } map { m!/0*(\d+)_[^/]+\z! }
	glob(root() . '/sql/0*.sql');

mkdir($sql) or die "$sql: $!\n";
system('cp', '-r', glob(root() . '/sql/*.sql'), $sql) == 0 or die "cp\n";

# as the module reads it, from the line that the code has

is((slurp(root() . '/src/http/pg/ngx_http_xet_pg_session.h')
	=~ /NGX_HTTP_XET_SCHEMA\s+"(\d+)"/)[0], $last, 'the version');

# --------------------------------------------------------------------------
# requests of all kinds, one after the other, in four processes

my ($in, @pids) = clients();

# functions alone, as in a release without a migration: once without a change
# of any, then some that change over and over

my %was = functions();
my $rounds = 12;

spew("$sql/functions.sql", "$text\n-- a comment\n");
is(migrate()->{code}, 0, 'functions: applied again');
is_deeply({ functions() }, \%was, 'functions: none is another one');

for my $round (1 .. $rounds) {
	my $changed = $text =~ s/^(BEGIN\n)/$1    -- round $round\n/gmr;

	$changed =~ s/^(AS \$\$\n    (?:SELECT|WITH))/$1 -- $round\n/gm;
	spew("$sql/functions.sql", $changed);

	my $r = migrate();

	is($r->{code}, 0, "functions: round $round") or diag($r->{err});
}

is_deeply({ functions() }, \%was, 'functions: in their places');
like($t->sql("SELECT prosrc FROM pg_proc WHERE proname = 'xorb_put'"),
	qr/-- round $rounds$/m, 'functions: replaced');

# a column, a table, a function that is new, one that has gone, and one that is
# called in another way, which no module calls

my $next = sprintf('%04d', $last + 1);

$text =~ s/DROP FUNCTION IF EXISTS /$&xet.brand_new, /;
$text =~ s/\z/\nCREATE FUNCTION xet.brand_new() RETURNS integer
    LANGUAGE sql AS \$\$ SELECT 1 \$\$;\n/;
spew("$sql/functions.sql", $text);
spew("$sql/${next}_more.sql", "-- compatible from $last\n\n"
	. "ALTER TABLE xet.files ADD COLUMN more integer;\n"
	. "CREATE TABLE xet.more (id integer);\n");

my $r = migrate();

is($r->{code}, 0, 'compatible') or diag($r->{err});
is($t->sql('SELECT xet.brand_new()'), 1, 'compatible: a new function');

$text =~ s/brand_new\(\)/brand_new(n integer DEFAULT 2)/;
$text =~ s/SELECT 1 /SELECT n /;
spew("$sql/functions.sql", $text);
is(migrate()->{code}, 0, 'called in another way');
is($t->sql('SELECT xet.brand_new()'), 2, 'called in another way: once');

$text =~ s/\nCREATE FUNCTION xet\.brand_new.*//s;
spew("$sql/functions.sql", $text);
is(migrate()->{code}, 0, 'gone');
is($t->sql("SELECT count(*) FROM pg_proc WHERE proname = 'brand_new'"), 0,
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
# one that is not compatible, and one that is only with those after it

my $two = sprintf('%04d', $last + 2);

spew("$sql/${two}_other.sql", 'CREATE TABLE xet.other ();');
is(migrate()->{code}, 0, 'not compatible');
is($t->get('/api/health')->{status}, 200, 'not compatible: sessions stay');
$t->pg_terminate();
ok(wait_for(60, sub { $t->get('/api/health')->{status} == 503 }),
	'not compatible: no new session');
ok($t->wait_log(qr/has another version than this module needs/),
	'not compatible: why');

$t->sql("UPDATE xet.migrations SET compatible_from = $last + 1"
	. " WHERE version = $last + 2");
$t->pg_terminate();
sleep(1);
is($t->get('/api/health')->{status}, 503, 'compatible with others');

$t->sql("UPDATE xet.migrations SET compatible_from = $last - 1"
	. " WHERE version = $last + 2");
ok(wait_for(60, sub { $t->get('/api/health')->{status} == 200 }),
	'compatible with older ones');

# an older database is refused as before

$t->sql("DELETE FROM xet.migrations WHERE version >= $last");
$t->pg_terminate();
ok(wait_for(60, sub { $t->get('/api/health')->{status} == 503 }), 'older');

$t->done();

# --------------------------------------------------------------------------

sub migrate {
	return xet(undef, { env => { XET_POSTGRES => $t->conninfo() } },
		'migrate', '--sql', $sql);
}

# The functions and what PostgreSQL knows them by.

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
