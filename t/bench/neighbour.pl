#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures how one tenant slows down another one.  Reconstructions are requested
# one after the other on one connection, on an idle server and while clients
# without a token send every kind of Hub request.  Prints the p50 and p99 of the
# response times, and the ratio to the idle p99.
#
#     perl t/bench/neighbour.pl [seconds [attack ...]]
#     XET_BENCH_POSTGRES='long=1' perl t/bench/neighbour.pl
#
# "(4 compute)" shows how the machine's scheduler alone affects a request: four
# processes compute all the time and send nothing to the server.  An attack
# keeps as many server processes busy: two workers and two PostgreSQL sessions
# for long reads.  "(8 compute)" has four more processes, one for each client of
# an attack.
#
# Each attack has four clients, on a repo of 10,000 files whose commit has the
# longest title; "commit" has one client with a token, which commits 5,000 files
# and deletes them.  There are two workers; no process is pinned.  Real
# attackers have their own machines: here their processes run with nice 19, or
# XET_BENCH_NICE, so that their own computing takes little from the server.
# Each attack lasts 8 seconds.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use POSIX ();
use Time::HiRes qw/ sleep time /;

use Test::Xet;
use Test::Xet::Bytes;
use Test::Xet::HTTP;
use Test::Xet::Table;

my $seconds = shift || choose(8, 0.2);
my $files = choose(10_000, 100);
my $nice = $ENV{XET_BENCH_NICE} // 19;
my $form = 'application/x-www-form-urlencoded';
my $t = Test::Xet->new(Test::Xet::Table::hub(), log => 'error');

$t->token_key();
$t->run();

if ($ENV{XET_BENCH_POSTGRES}) {
	$t->write_conf(undef, directives => { xet_postgres => '"'
		. $t->conninfo() . "\" $ENV{XET_BENCH_POSTGRES}" });
	$t->reload();
}

my $m = '/api/models/me/m';
my $plan = victim();

fill();

my @paths = map { "d$_->[0]/f$_->[1]" } map { [ $_ % 100, $_ ] } 1 .. $files;
my %attacks = (
	'paths-info' => [ 4, POST => "$m/paths-info/main",
		join('&', 'expand=true', map { "paths=$_" } @paths), $form ],
	'paths-info, one path' => [ 4, POST => "$m/paths-info/main",
		join('&', 'expand=true', ("paths=$paths[0]") x $files), $form ],
	'tree' => [ 4, GET => "$m/tree/main?recursive=1&expand=1" ],
	'info' => [ 4, GET => "$m?blobs=true" ],
	'commits' => [ 4, GET => "$m/commits/main" ],
	'refs' => [ 4, GET => "$m/refs" ],
	'search' => [ 4, GET => '/api/models?search=nothing-is-called-so' ],
	'page' => [ 4, GET => '/me/m?search=x' ],
	'preupload' => [ 4, POST => "$m/preupload/main", JSON::PP::encode_json({
		files => [ map { { path => $_, size => 1 } } @paths ] }),
		'application/json' ],
	'commit' => [ 1, \&commits ],
	'(4 compute)' => [ 4, sub { 1 while 1 } ],
	'(8 compute)' => [ 8, sub { 1 while 1 } ]
);
my $compute;
my @order = ('(4 compute)', '(8 compute)', 'paths-info', 'paths-info, one path',
	qw/ tree info commits refs search page preupload commit /);

@order = grep { my $name = $_; grep { $name =~ /^(?:\Q$_\E|\()/ } @ARGV } @order
	if @ARGV;

measure(choose(2, 0.1));

my @idle = measure($seconds);

printf("%-22s %8s %8s %8s %10s %6s\n", 'attack', 'p50, ms', 'p99, ms',
	'max, ms', 'x idle p99', 'n, 1/s');
row('(idle)', @idle);

for my $name (@order) {
	my ($n, @what) = @{ $attacks{$name} };
	my @pids = map { attacker($name =~ /^\(/ ? 0 : $nice, @what) } 1 .. $n;

	sleep(choose(1, 0.1));
	row($name, measure($seconds));

	kill 'TERM', @pids;
	waitpid($_, 0) for @pids;
	sleep(choose(1, 0.1));
}

row('(idle again)', measure($seconds));

$t->stop();
$t->pg_stop();

# --------------------------------------------------------------------------

sub row {
	my ($name, @times) = @_;

	my ($p50, $p99, $max) = @times[$#times * 0.5, $#times * 0.99, -1];

	printf("%-22s %8.2f %8.2f %8.2f %10.1f %6d\n", $name, $p50, $p99, $max,
		$p99 / $idle[$#idle * 0.99], @times / $seconds);

	$compute //= $p99 if $name eq '(4 compute)';
	bench_row("a tenant beside: $name", $p99, 'ms, p99', '4 compute',
		$p99 / $compute, $name =~ /^\(/ ? undef : 1, 'less')
		if $compute;
}

# Returns the response times of reconstructions, in milliseconds, sorted.
# Pauses between the requests ensure that all phases of the other load are
# measured.

sub measure {
	my ($for) = @_;

	my ($uri, %headers) = @$plan;
	my $end = time() + $for;
	my $c = $t->connect();
	my @times;

	while (time() < $end) {

		# nginx closes a connection after 1,000 requests

		$c = $t->connect() if @times && @times % 900 == 0;

		my $start = time();

		$c->start('GET', $uri, \%headers);

		my $r = $c->response('GET');

		push @times, 1000 * (time() - $start);
		die 'a reconstruction: ' . $r->summary() . "\n"
			if $r->{status} != 200;
		sleep(0.003);
	}

	return sort { $a <=> $b } @times;
}

sub attacker {
	my ($less, $method, @rest) = @_;

	my $pid = fork() // die "fork: $!\n";

	return $pid if $pid;

	$SIG{TERM} = sub { POSIX::_exit(0) };
	POSIX::nice($less);

	while (1) {
		if (ref $method) {
			$method->();
			next;
		}

		my ($uri, $body, $type) = @rest;

		eval {
			$t->http($method, $uri, defined $body
				? { 'Content-Type' => $type } : {},
				defined $body ? \$body : undef, timeout => 60);
		};
	}
}

sub commits {
	for my $op ('file', 'deletedFile') {
		my $body = join("\n", '{"key":"header","value":{"summary":"s"}}',
			map { $op eq 'file' ? "{\"key\":\"file\",\"value\":"
				. "{\"path\":\"big/x$_\",\"content\":\"\","
				. '"encoding":"base64"}}'
				: "{\"key\":\"deletedFile\",\"value\":"
				. "{\"path\":\"big/x$_\"}}" } 1 .. 5000);

		eval {
			$t->post('/api/models/me/c/commit/main', \$body,
				{ 'Content-Type' => 'application/x-ndjson' },
				timeout => 120);
		};
	}
}

sub create {
	my ($owner, $name) = @_;

	my $r = $t->post('/api/repos/create', \JSON::PP::encode_json({
		name => $name, organization => $owner }),
		{ 'Content-Type' => 'application/json' });

	die $r->summary() . "\n" if $r->{status} != 200;
}

# Creates the data of the attacked tenant: a 4 MB file, and a token to read it.

sub victim {
	create('you', 'v');

	my $data = random_bytes(7, 4_000_000);
	my $oid = sha256_hex($data);
	my $r = $t->post('/you/v.git/info/lfs/objects/batch',
		\JSON::PP::encode_json({ operation => 'upload',
			transfers => [ 'basic' ], objects => [ { oid => $oid,
				size => length($data) } ] }),
		{ 'Content-Type' => 'application/vnd.git-lfs+json' });
	my ($uri) = $r->json()->{objects}[0]{actions}{upload}{href}
		=~ m!^http://[^/]+(/.*)!;

	$r = $t->http('PUT', $uri, { 'Content-Length' => length($data) }, $data);
	die $r->summary() . "\n" if $r->{status} != 200;

	my $body = join("\n", map { JSON::PP::encode_json($_) }
		{ key => 'header', value => { summary => 's' } },
		{ key => 'lfsFile', value => { path => 'a', algo => 'sha256',
			oid => $oid, size => length($data) } });

	$r = $t->post('/api/models/you/v/commit/main', \$body,
		{ 'Content-Type' => 'application/x-ndjson' });
	die $r->summary() . "\n" if $r->{status} != 200;

	my $token = $t->get('/api/models/you/v/xet-read-token/main')->json();
	my $hash = $t->head('/you/v/resolve/main/a')->header_value('X-Xet-Hash');

	return [ "/cas/v1/reconstructions/$hash",
		Authorization => "Bearer $token->{accessToken}" ];
}

# Creates two repos of the attacker, one of them with 10,000 files, 200 commits
# and 2,000 branches; and 10,000 repos for searches.

sub fill {
	create('me', $_) for qw/ m c /;

	$t->sql(<<"EOF_SQL");
INSERT INTO xet.hub_commits (repo_id, line, seq, oid, parent, who, title,
                             message)
SELECT r.id, 0, n, substr(sha256(int8send(n)), 1, 20),
       CASE WHEN n = 2 THEN (SELECT c.oid FROM xet.hub_commits c
                              WHERE c.repo_id = r.id AND c.seq = 1)
            ELSE substr(sha256(int8send(n - 1)), 1, 20) END, 'me',
       repeat('t', 4096), repeat('m', 65536)
  FROM generate_series(2, 200) n, xet.hub_repos r WHERE r.name = 'm';
INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, hash, size,
                           sha256, made)
SELECT r.id, 0, 'd' || i % 100 || '/f' || i, 200, 'd' || i % 100,
       sha256(('f' || i)::bytea), 400, sha256(('d' || i)::bytea),
       substr(sha256(int8send(200)), 1, 20)
  FROM generate_series(1, $files) i, xet.hub_repos r WHERE r.name = 'm';
INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, made)
SELECT r.id, 0, 'd' || i, 200, '', substr(sha256(int8send(200)), 1, 20)
  FROM generate_series(0, 99) i, xet.hub_repos r WHERE r.name = 'm';
UPDATE xet.hub_lines l SET last = 200, files = $files
  FROM xet.hub_repos r WHERE r.id = l.repo_id AND r.name = 'm';
UPDATE xet.hub_refs f SET oid = substr(sha256(int8send(200)), 1, 20)
  FROM xet.hub_repos r WHERE r.id = f.repo_id AND r.name = 'm';
INSERT INTO xet.hub_refs
SELECT r.id, 'heads/b' || n, substr(sha256(int8send(200)), 1, 20)
  FROM generate_series(1, 2000) n, xet.hub_repos r WHERE r.name = 'm';
INSERT INTO xet.hub_repos (kind, owner, name)
SELECT 0, 'o' || n % 10, 'r' || n FROM generate_series(1, $files) n;
INSERT INTO xet.hub_lines (repo_id, line, last)
SELECT r.id, 0, 1 FROM xet.hub_repos r WHERE r.owner LIKE 'o%';
INSERT INTO xet.hub_refs
SELECT r.id, 'heads/main', substr(sha256(int8send(1)), 1, 20)
  FROM xet.hub_repos r WHERE r.owner LIKE 'o%';
ANALYZE;
EOF_SQL
}
