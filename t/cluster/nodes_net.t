#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Four nodes, each on its own machine, with one store and one database, and
# clients of all nodes.  Under this load nodes join, and leave in three ways: by
# a graceful stop, killed, and cut off from the network.  Acknowledged data is
# available at every node.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Net;

BEGIN { Test::Xet::Net->enter() }

use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Load;
use Test::Xet::Process qw/ children root run_command slurp /;
use Test::Xet::S3;

use Time::HiRes qw/ sleep time /;

my $bucket = ($ENV{XET_TEST_STORE} // '') eq 's3';

if ($bucket) {
	my $lacks = Test::Xet::S3->missing('moto');

	plan(skip_all => "moto: $lacks") if $lacks;
}

my $net = Test::Xet::Net->new();
my @machines = map { $net->machine() } 1 .. 4;
my $s3 = $bucket ? Test::Xet::S3->new(server => 'moto',
	addr => $net->addr()) : undef;

my %conf = (log => 'info', connections => 256, timeout => 400,
	Test::Xet::Token::repos($bucket ? locations() : undef),
	pg_params => 'connect_timeout=1s',
	pg_conf => "max_connections = 150\n", net => $net,
	s3_params => 'timeout=4s', s3 => $s3 // 0);
my %gc = (directives => { xet_gc => 'on grace=0s interval=1s' });

my $t = Test::Xet->new(%conf, %gc, workers => 2, machine => $machines[0]);
my $pg = $t->pg();

$t->token_key();
$t->run();

my @nodes = ($t);

for (1 .. 3) {
	push @nodes, Test::Xet->new(%conf, $_ == 1 ? %gc : (), beside => $t,
		workers => $_ == 1 ? 2 : 1, machine => $machines[$_]);
	$nodes[-1]->token_key();
}

$nodes[1]->run();

# allows only the log messages that the cut and the killed processes cause

$_->allow(qr/PostgreSQL|"\w+" failed|timed out/,
	qr/413 quota_exceeded/) for @nodes;
$_->allow(qr/xet: "s3:/) for $bucket ? @nodes : ();

my %tokens = map { $_ => $t->auth('delete', $_)->{Authorization}
	=~ s/^Bearer //r } qw{ a/a@ann b/b@bob };
my $load = Test::Xet::Load->new($t, tokens => \%tokens,
	pool => [ Test::Xet::Load::make($t, 12) ]);

# --------------------------------------------------------------------------
# under load: two nodes, then four, and three of them leave one after another

my %at = (begin => time());

$load->nodes(@nodes[0, 1]);
$load->start(uploads => 3, reads => 2, deletes => 1);
progress('two nodes', 40);

$_->run() for @nodes[2, 3];
$load->nodes(@nodes);
$at{four} = time();
progress('four nodes', 60);

# graceful stop: the node finishes the requests that it has begun

$at{quit} = time();
ok($nodes[2]->stop(), 'a node leaves in order');
$load->nodes(@nodes[0, 1, 3]);
$at{quitted} = time();
progress('three nodes', 20);

# killed: all processes of the node at the same time

$at{kill} = time();
crash($nodes[3]);
$load->nodes(@nodes[0, 1]);
$at{killed} = time();
progress('two nodes are left', 20);

$_->run() for @nodes[2, 3];
$load->nodes(@nodes);
progress('both are back', 40);

# cut off: clients on the same side as that node get no false response

$at{cut} = time();
$machines[1]->cut();
$load->nodes(@nodes[0, 2, 3]);

my $inside = inside($nodes[1], 'a/a@ann');

is($inside->{status}, 503, 'cut off: nothing is acknowledged there');
progress('cut off: the others go on', 40);
ok(wait_for(30, sub { $t->sql("SELECT count(*) FROM xet.jobs WHERE"
	. " name = 'gc' AND until > now()") }),
	'cut off: another node collects');

$machines[1]->mend();
$at{mended} = time();

ok(wait_for(30, sub { upload($nodes[1], 'back')->{status} == 200 }),
	'reconnected: uploads');
$load->nodes(@nodes);
progress('it is back: all go on', 40);
$load->stop();

# --------------------------------------------------------------------------
# the responses that the clients got

is(join("\n", $load->bad()), '', 'no wrong response');

my %allowed = map { $_->addr() => [] } @nodes;

push @{ $allowed{$nodes[2]->addr()} }, [ 'quit', 'quitted', qr/^refused|^cut/ ];
push @{ $allowed{$nodes[3]->addr()} }, [ 'kill', 'killed', qr/^refused|^cut/ ];
push @{ $allowed{$nodes[1]->addr()} }, [ 'cut', 'mended', qr/^refused|^cut/ ];

my @failed = grep { !allowed($_) } $load->failures();

is(scalar @failed, 0, 'failures only where a node was leaving')
	or diag(join("\n", map { join(' ', $_->{time} - $at{begin},
		@$_{qw/ addr what status /}) } @failed[0 .. 9]),
		explain({ map { $_ => $at{$_} - $at{begin} } keys %at }));

my @files = $load->acknowledged();
my (%missing, %bytes);

cmp_ok(scalar @files, '>', 100, scalar(@files) . ' files were acknowledged');

for my $node (@nodes) {
	my $c = $node->connect();

	for my $file (@files) {
		my ($hash, $name, $token) = @$file;
		my $r = $c->exchange('GET', "/api/v1/files/$hash",
			bearer($token), undef, timeout => 30);

		$missing{"$hash $name: $r->{status}"}++
			if $r->{status} != 200
			|| $r->{body} ne ($bytes{$name}
				//= $load->bytes($name));
	}

	$c->close();
}

is(join(', ', sort keys %missing), '', 'all files, at every node');

# --------------------------------------------------------------------------
# a limit with room for one of four uploads, which are sent to four nodes at the
# same time

for my $round (1 .. 3) {
	my $used = $t->sql("SELECT logical FROM xet.usage_list()"
		. " WHERE name = 'b/b'");
	my $room = 30000;

	$t->sql("SELECT xet.quota_set('repo', 'b/b', NULL, NULL, "
		. ($used + $room) . ')');

	my @put = map { [ $nodes[$_], random_bytes(100 * $round + $_, $room) ] }
		0 .. $#nodes;
	my @c = map { $_->[0]->http_start('PUT', '/api/v1/files',
		{ %{ bearer('b/b@bob') }, 'Content-Length' => $room },
		substr($_->[1], 0, -1)) } @put;

	$c[$_]->send(substr($put[$_][1], -1)) for 0 .. $#c;

	my @status = map { $_->response('PUT', timeout => 30)->{status} } @c;

	# a collector without a grace period may remove a xorb before its file
	# exists; the upload then gets 503, and is repeated

	for my $i (grep { $status[$_] == 503 } 0 .. $#put) {
		$status[$i] = $put[$i][0]->http('PUT', '/api/v1/files',
			bearer('b/b@bob'), \$put[$i][1], timeout => 30)
			->{status};
	}

	@status = sort @status;

	is("@status", '200 413 413 413', "a limit at four nodes, $round");
	is($t->sql("SELECT logical FROM xet.usage_list() WHERE name = 'b/b'"),
		$used + $room, 'and is counted');
}

# --------------------------------------------------------------------------
# stored data

# the store can be verified only after the collector has removed the copies of
# all deleted rows

ok(wait_for(60, sub { settled() }), 'the collector has nothing to do')
	or diag($t->sql("SELECT * FROM xet.jobs WHERE name = 'gc'"));

my $verify = xet(undef, { env => { XET_POSTGRES => $t->conninfo() } },
	'verify', '--store', store());

is($verify->{code}, 0, 'the store is consistent') or diag($verify->{out},
	$verify->{err});
is($t->sql('SELECT count(*) FROM xet.usage_recount()'), 0,
	'the sums are right');
is($t->sql('SELECT sum(stored_size) FROM xet.xorbs'),
	$t->sql('SELECT sum(bytes) FROM xet.charges'),
	'each xorb is charged once');

# the killed node and the node that was cut off have left copies without rows

my @orphans = orphans();

diag(scalar(@orphans) . ' copies without a row') if @orphans;
cmp_ok(scalar @orphans, '<=', 20, 'few copies have no row');

if (!$bucket) {
	my $old = time() - 90000;

	utime($old, $old, map { $t->store() . "/$_" } @orphans);
	$t->let_age();
	$t->sql("SELECT xet.job_now('orphans')");

	ok(wait_for(60, sub { !orphans() }), 'and are removed')
		or diag(join("\n", orphans()));
}

$t->done();

# --------------------------------------------------------------------------

sub locations {
	return 'include ' . root() . '/conf/xet_bucket.conf;'
		. ' location @xet_error { xet_error; }';
}

sub bearer { return { Authorization => "Bearer $tokens{$_[0]}" } }

sub upload {
	my ($node, $name) = @_;

	my $r = eval { $node->put('/api/v1/files', \"$name of a test",
		bearer('a/a@ann'), connect => 3, timeout => 20) };

	return $r || { status => 0 };
}

# Sends a request from the machine of a node, as a client that is cut off
# together with the node.

sub inside {
	my ($node, $token) = @_;

	my ($status, $out) = run_command([
		$machines[1]->command(), 'curl', '-s', '-m', 60, '-w',
		'\n%{http_code}', '-H', "Authorization: Bearer $tokens{$token}",
		'-T', "$FindBin::Bin/$FindBin::Script",
		$node->url('/api/v1/files') ], timeout => 80);
	my ($body, $code) = $out =~ /^(.*)\n(\d+)\z/s;

	return { status => $code // 0, body => $body };
}

sub crash {
	my ($node) = @_;

	my $nginx = $node->nginx();
	my @all = ($nginx->pid(), children($nginx->pid()));

	kill('STOP', $nginx->pid());
	kill('KILL', @all);
	$nginx->kill();
}

# Waits until clients have received n more acknowledgements.

sub progress {
	my ($name, $n) = @_;

	my $before = () = slurp($load->{history}) =~ /^A/mg;

	ok(wait_for(30, sub {
		my $now = () = slurp($load->{history}) =~ /^A/mg;
		return $now >= $before + $n;
	}), "$name: uploads");
}

sub allowed {
	my ($failure) = @_;

	# a request that began before the event may fail because of that event,
	# unless the node is stopped gracefully

	for (@{ $allowed{$failure->{addr}} }) {
		my ($from, $to, $status) = @$_;
		my $early = $from eq 'quit' ? 0.02 : 25;

		return 1 if $failure->{time} >= $at{$from} - $early
			&& $failure->{time} <= $at{$to} + 0.5
			&& $failure->{status} =~ $status;
	}

	return 0;
}

sub settled {
	return $t->sql('SELECT (SELECT count(*) FROM xet.gc_copies)'
		. ' + (SELECT count(*) FROM xet.gc_files)'
		. ' + (SELECT count(*) FROM xet.gc_xorbs)') == 0;
}

sub names {
	return map { s!^a/prefix/!!r } sort keys %{ $s3->objects() } if $bucket;
	return $t->files_in_store();
}

sub orphans {
	my %rows = map { $_ => 1 } $t->sql('SELECT encode(hash, \'hex\') || '
		. "lpad(to_hex(copy_id), 8, '0') FROM xet.xorbs");

	return grep { !m!identity! && !$rows{key($_)} } names();
}

# Returns the hash and id in a copy's name, in the format of rows.

sub key {
	my ($hash, $copy_id) = $_[0] =~ m!/([0-9a-f]{64})\.([0-9a-f]{8})\z!
		or return '';

	return plain_hash($hash) . $copy_id;
}

sub store {
	return $t->store() unless $bucket;
	return join(' ', (split(' ', $t->conf_store()))[0 .. 4]);
}
