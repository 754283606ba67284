#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Long reads have their own sessions, so that reconstructions and files by name
# do not wait for them.  A read that takes too long is cancelled, callers take
# turns, and no caller can fill the whole queue.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ patience wait_for /;
use Test::Xet::Table;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();

my %hub = Test::Xet::Table::hub(undef, 'location = /metrics { xet_metrics; }');

$hub{http} .= ' log_format who "$remote_addr $uri $status";'
	. ' access_log who.log who;';

my $t = Test::Xet->new(%hub, workers => 1);

$t->token_key();
$t->run();

my $pg = '"' . $t->conninfo() . '"';

conf('long=2 timeout=60s long_timeout=60s');

my $data = 'hello ' x 1000;

$t->post('/api/repos/create', \JSON::PP::encode_json({ name => 'm',
	organization => 'me' }), { 'Content-Type' => 'application/json' });
send_file('a.txt', $data);
send_file('README.md', "a text\n");

my $head = $t->head('/me/m/resolve/main/a.txt');
my $hash = $head->header_value('X-Xet-Hash');
my $token = $t->get('/api/models/me/m/xet-read-token/main')->json();
my $plan = "/cas/v1/reconstructions/$hash";
my %bearer = (Authorization => "Bearer $token->{accessToken}");

is($head->{status}, 200, 'a file by its name');
is($t->get($plan, \%bearer)->{status}, 200, 'its reconstruction');

# --------------------------------------------------------------------------
# Hub requests that are long reads

my @long = (
	[ 'hub_refs_get', 'GET', '/api/models/me/m/refs' ],
	[ 'hub_info', 'GET', '/api/models/me/m' ],
	[ 'hub_tree_rows', 'GET', '/api/models/me/m/tree/main?recursive=1' ],
	[ 'hub_paths_rows', 'POST', '/api/models/me/m/paths-info/main',
		'paths=a.txt', 'application/x-www-form-urlencoded' ],
	[ 'hub_changes', 'GET', '/api/models/me/m/changes/main' ],
	[ 'hub_commits_get', 'GET', '/api/models/me/m/commits/main' ],
	[ 'hub_list', 'GET', '/api/models?search=m' ],
	[ 'hub_preupload', 'POST', '/api/models/me/m/preupload/main',
		'{"files":[{"path":"b","size":1}]}', 'application/json' ]
);

# long reads that do not end, because another session has locked a table;
# reconstructions and files by name do not use this table

my $lock = $t->pg_lock('xet.hub_cards');
my @asked = map { $t->http_start('GET', '/api/models/me/m', {}, undef,
	close => 1, timeout => 60) } 1 .. 40;

ok(wait_for(10, sub { $t->pg_blocked() == 2 }), 'long reads wait');
is($t->pg_blocked(), 2, 'two of them in PostgreSQL, whatever is asked');

for my $round (1 .. 3) {
	served("lock $round: a reconstruction", $t->get($plan, \%bearer));
	served("lock $round: a file by its name",
		$t->head('/me/m/resolve/main/a.txt'));
}

my $h = health();

is($h->{long}{sessions}, 2, 'health: sessions');
is($h->{long}{in_flight}, 2, 'health: in flight');
is($h->{long}{waiting}, @asked - 2, 'health: the others wait');
is($h->{read}{waiting} + $h->{read}{in_flight}, 0, 'health: no short read');

$lock->unlock();
is(join(' ', map { $_->response('GET')->{status} } @asked),
	join(' ', (200) x @asked), 'unlocked: all are answered');

# --------------------------------------------------------------------------
# each of these requests is a long read

for my $row (@long) {
	my ($name, $method, $uri, $body, $type) = @$row;

	my $from = long_count();
	my $r = defined $body
		? $t->post($uri, \$body, { 'Content-Type' => $type })
		: $t->get($uri);

	is($r->{status}, 200, "$name: is answered");
	cmp_ok(long_count(), '>', $from, "$name: is a long read");
}

# --------------------------------------------------------------------------
# PostgreSQL cancels a read that takes too long: 503, and the session is kept

conf('long=1 long_timeout=500ms timeout=60s');
$t->get('/api/models/me/m');

$lock = $t->pg_lock('xet.hub_cards');

my $from = $t->log_size();
my $r = $t->get('/api/models/me/m', {}, timeout => 60);

is($r->{status}, 503, 'too long: 503');
ok($r->header_value('Retry-After'), 'too long: Retry-After');
like($t->log($from), qr/"hub_info" failed, SQLSTATE 57014/, 'and logged');
is(health()->{long}{ready}, 1, 'the session is kept');
served('a file by its name', $t->head('/me/m/resolve/main/a.txt'));
$lock->unlock();
is($t->get('/api/models/me/m')->{status}, 200, 'unlocked');

# --------------------------------------------------------------------------
# callers take turns: a request does not wait for thirty requests of another
# caller

conf('long=1 long_timeout=60s timeout=60s');
$t->get('/api/models/me/m');

$lock = $t->pg_lock('xet.hub_cards');
@asked = map { from('127.0.0.2') } 1 .. 30;
ok(wait_for(10, sub { my $h = health(); $h->{long}{waiting} == 29 }),
	'turns: one waits with thirty requests');

my @few = map { from('127.0.0.3') } 1 .. 2;

ok(wait_for(10, sub { my $h = health(); $h->{long}{waiting} == 31 }),
	'turns: another has two');

my $mark = length($t->read_file('who.log'));

$lock->unlock();
is(join(' ', map { $_->response('GET')->{status} } @asked, @few),
	join(' ', (200) x 32), 'turns: all are answered');

# nginx writes a log line after the response has been sent

my @order;

wait_for(10, sub {
	@order = substr($t->read_file('who.log'), $mark)
		=~ /^(127\.0\.0\.[23]) \/api\/models\/me\/m /mg;

	return @order >= 32;
});

my @at = grep { $order[$_] eq '127.0.0.3' } 0 .. $#order;

is(scalar @order, 32, 'turns: the log has all');
cmp_ok($at[0], '<=', 2, 'turns: the first one of two comes soon');
cmp_ok($at[1], '<=', 4, 'turns: and the second one');

# --------------------------------------------------------------------------
# a caller has used its share of a queue, and there is room for other callers

conf('long=1 long_timeout=60s timeout=60s queue=40');
$t->get('/api/models/me/m');

$lock = $t->pg_lock('xet.hub_cards');
$from = $t->log_size();
@asked = map { from('127.0.0.2') } 1 .. 20;
ok($t->wait_log(qr/long reads of one caller are waiting/, 10, $from),
	'a part: no more are taken');
ok(wait_for(10, sub { my $h = health(); $h->{long}{waiting} == 11 }),
	'a part: a quarter of the queue');
@few = map { from('127.0.0.3') } 1 .. 5;
ok(wait_for(10, sub { my $h = health(); $h->{long}{waiting} == 16 }),
	'a part: there is room for others');
$lock->unlock();
is(join(' ', map { $_->response('GET')->{status} } @few),
	'200 200 200 200 200', 'a part: others are answered');

my %status;

for (@asked) {
	my $r = $_->response('GET');

	$status{$r->{status}}++;
	ok($r->header_value('Retry-After'), 'a part: Retry-After')
		if $r->{status} == 503 && $status{503} == 1;
}

is($status{200}, 12, 'a part: accepted requests succeed');
is($status{503}, 8, 'a part: and nothing else');

$t->allow(qr/"hub_info" failed, SQLSTATE 57014/,
	qr/long reads of one caller are waiting/);
$t->done();

# --------------------------------------------------------------------------

sub conf {
	my ($params) = @_;

	$t->write_conf(undef, directives => { xet_postgres => "$pg $params" });
	$t->reload();
	wait_for(10, sub { health() });
}

sub from {
	my ($address) = @_;

	return $t->http_start('GET', '/api/models/me/m', {}, undef, close => 1,
		timeout => 60, from => $address);
}

sub health {
	my $r = $t->get('/cas/v1/health');

	return $r->{status} == 200 ? $r->json()->{postgres} : undef;
}

# Returns the number of long-read statements so far, in all sessions.

sub long_count {
	my ($n) = $t->get('/metrics')->{body}
		=~ /^xet_statements_total\{pg_pool="long",result="ok"\} (\d+)/m;

	return $n // -1;
}

sub served {
	my ($name, $r) = @_;

	ok($r->{status} == 200 && $r->{time} < patience(5), $name)
		or diag("$r->{status} in $r->{time} s");
}

sub send_file {
	my ($path, $data) = @_;

	my $oid = sha256_hex($data);
	my $r = $t->post('/me/m.git/info/lfs/objects/batch',
		\JSON::PP::encode_json({ operation => 'upload',
			transfers => [ 'basic' ], objects => [ { oid => $oid,
				size => length($data) } ] }),
		{ 'Content-Type' => 'application/vnd.git-lfs+json' });
	my ($uri) = $r->json()->{objects}[0]{actions}{upload}{href}
		=~ m!^http://[^/]+(/.*)!;
	my $put = $t->http('PUT', $uri, {
		'Content-Length' => length($data) }, $data);

	die $put->summary() if $put->{status} != 200;

	my $body = join("\n", map { JSON::PP::encode_json($_) }
		{ key => 'header', value => { summary => 'a commit' } },
		{ key => 'lfsFile', value => { path => $path, algo => 'sha256',
			oid => $oid, size => length($data) } });

	$put = $t->post('/api/models/me/m/commit/main', \$body,
		{ 'Content-Type' => 'application/x-ndjson' });
	die $put->summary() if $put->{status} != 200;
}
