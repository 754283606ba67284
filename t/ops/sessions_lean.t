#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A session to PostgreSQL prepares a statement when it first sends it, in the
# same round trip.  A preparation that fails is an error of its request alone:
# the session continues with the other requests.  Idle sessions are closed; one
# for reads and one for writes are replaced by new ones.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ module_table wait_for /;

my $t = Test::Xet->new(workers => 1,
	allow => [ qr/statement "file_(terms|open)\w*" failed, SQLSTATE 42883/,
		qr/statement "file_\w+" failed and is retried/,
		qr/xet: connection to PostgreSQL lost/,
		qr/xet: connecting to PostgreSQL failed: the functions of/,
		qr/statement "file_open\w*": column 3 has an unexpected type/,
		qr/database_unavailable/, qr/PostgreSQL rejected/,
		qr/xet: 500/, qr/internal_error/ ]);

my $pg = '"' . $t->conninfo() . '"';

$t->write_conf(undef, directives => {
	xet_postgres => "$pg reads=1 writes=2 idle=10m" });
$t->run();

my $file = $t->upload(random_bytes(1, 20000));
my $plan = "/api/v1/reconstructions/$file->{hash}";
my $bytes = "/api/v1/files/$file->{hash}";

# --------------------------------------------------------------------------
# when a statement is prepared

# PostgreSQL logs each step of a statement with its name

$t->sql('ALTER SYSTEM SET log_min_duration_statement = 0');
$t->sql('SELECT pg_reload_conf()');

my $from = fresh();
my %steps = steps($from);
my $table = module_table('statements');

cmp_ok($steps{parse}{'<unnamed>'}, '>', 2 * @$table,
	'a new session checks all statements');
cmp_ok(scalar(grep { $_ ne '<unnamed>' } keys %{ $steps{parse} }), '<', 10,
	'and prepares few')
	or diag(join(' ', sort keys %{ $steps{parse} }));
is($steps{parse}{file_terms_all}, undef, 'not that of a reconstruction');

is($t->get($plan)->{status}, 200, 'a reconstruction') for 1 .. 3;

wait_for(10, sub {
	my %steps = steps($from);
	return ($steps{execute}{file_terms_all} // 0) == 3;
});
%steps = steps($from);
is($steps{execute}{file_terms_all}, 3, 'three are executed');
is($steps{parse}{file_terms_all}, 1, 'and the first one is prepared');

$t->sql('ALTER SYSTEM RESET log_min_duration_statement');
$t->sql('SELECT pg_reload_conf()');

# --------------------------------------------------------------------------
# a function that was dropped after the check

my ($ask, $lock);

for my $case (
	[ 'first' => 0 ],
	[ 'behind another statement' => 1 ])
{
	my ($title, $behind) = @$case;

	fresh();
	$t->sql('ALTER FUNCTION xet.file_terms RENAME TO gone');

	my @pids = $t->pg_backends();

	# all requests below are in flight on one session, whose first statement
	# that reads xet.files waits for this lock

	$lock = $t->pg_lock('xet.files');

	my @asked = map { ask($_) } ($bytes) x $behind, $plan, $plan, $bytes,
		$plan, $bytes;

	if ($behind) {
		ok(wait_for(10, sub { $t->pg_blocked() }), "$title: waits");
	}

	$lock->unlock();

	is(join(' ', map { $_->response()->{status} } @asked),
		join(' ', (200) x $behind, 500, 500, 200, 500, 200),
		"$title: an error of its own requests");

	$t->sql('ALTER FUNCTION xet.gone RENAME TO file_terms');
	is($t->get($plan)->{status}, 200, "$title: prepared later");
	is($t->get($bytes)->{body}, $file->{content} // random_bytes(1, 20000),
		"$title: and a file");
	is(join(' ', $t->pg_backends()), join(' ', @pids),
		"$title: in the same sessions");
}

# --------------------------------------------------------------------------
# a function that was replaced after the check, with another result

fresh();

my $good = join("\n", $t->sql("SELECT pg_get_functiondef("
	. "'xet.file_open'::regproc)"));
my $bad = $good =~ s/first_offset bigint/first_offset integer/r;

isnt($bad, $good, 'replaced: another function');
$from = $t->log_size();
replace($bad);
is($t->get($bytes)->{status}, 503, 'replaced: no wrong row is read');
like($t->log($from), qr/"file_open\w*": column 3 has an unexpected type/,
	'replaced: the log names it');
ok(wait_for(20, sub { $t->get('/api/health')->{status} == 503 }),
	'replaced: no new session');

replace($good);
ok(wait_for(20, sub { $t->get('/api/health')->{status} == 200 }),
	'replaced: right again');
is($t->get($bytes)->{status}, 200, 'replaced: read again');

# --------------------------------------------------------------------------
# idle sessions

$t->write_conf(undef, directives => {
	xet_postgres => "$pg reads=3 writes=4 depth=1 idle=2s" });
$t->reload();
wait_for(10, sub { $t->get('/api/health')->{status} == 200 });

$lock = $t->pg_lock('xet.files');

my @asked = map { ask($_) } ($plan, $bytes) x 4;

ok(wait_for(10, sub { $t->pg_blocked() == 3 }), 'idle: three sessions read');
$lock->unlock();
is(join(' ', map { $_->response()->{status} } @asked),
	join(' ', (200) x @asked), 'idle: all are served');
is($t->get("/api/v1/chunks/default/"
	. $file->{xorbs}[0]{chunks}[0]{hash})->{status}, 200,
	'idle: a chunk, in a session of its own');
cmp_ok(scalar(my @many = $t->pg_backends()), '>=', 5, 'idle: many sessions');
my %many = map { $_ => 1 } @many;

ok(wait_for(20, sub {
	my @pids = $t->pg_backends();
	return @pids == 2 && !grep { $many{$_} } @pids;
}), 'idle: two new ones are left') or diag(join(' ', $t->pg_backends()));

my @left = $t->pg_backends();

sleep(4);
is(join(' ', $t->pg_backends()), "@left", 'idle: and stay');

# statements keep a session open

$lock = $t->pg_lock('xet.files');
@asked = map { ask($plan) } 1 .. 3;
ok(wait_for(10, sub { $t->pg_blocked() == 3 }), 'busy: three sessions again');
sleep(4);
is($t->pg_blocked(), 3, 'busy: they stay for longer than the time');
$lock->unlock();
is(join(' ', map { $_->response()->{status} } @asked), '200 200 200',
	'busy: and respond');

$t->done();

# Sends a request without waiting for its response.

sub ask {
	my ($uri) = @_;

	return $t->http_start('GET', $uri, {}, undef, close => 1,
		timeout => 60);
}

# Replaces all sessions by new ones.  Returns the size of PostgreSQL's log
# before that.

sub fresh {
	my @old = $t->pg_backends();
	my $from = length($t->pg()->log());

	$t->pg_terminate();

	wait_for(20, sub {
		my %old = map { $_ => 1 } @old;

		return (my @new = grep { !$old{$_} } $t->pg_backends()) >= 2
			&& $t->get('/api/health')->{status} == 200;
	}) or die "no new sessions\n";

	return $from;
}

# Returns the steps of statements in PostgreSQL's log: how often each name was
# parsed, bound and executed.

sub steps {
	my ($from) = @_;

	my %steps;
	my $log = substr($t->pg()->log(), $from);

	$steps{$1}{$2}++ while $log =~ /ms +(parse|bind|execute) ([\w<>]+): /g;

	return %steps;
}

# PostgreSQL does not check the body, which may not match other result types.

sub replace {
	my ($text) = @_;

	$t->sql("BEGIN; SET LOCAL check_function_bodies = off;"
		. " DROP FUNCTION xet.file_open; $text; COMMIT");
}
