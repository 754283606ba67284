#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Hub responses that grow with a repo are sent in parts.  The bytes are the same
# as in one part, and all parts come from one commit even if commits are added
# in the meantime.  The server queries a part only when the client needs it.  If
# a later part is unavailable, the response is truncated.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ wait_for /;
use Test::Xet::Table;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use Socket qw/ AF_INET SOCK_STREAM SOL_SOCKET SO_RCVBUF IPPROTO_TCP
	pack_sockaddr_in inet_aton /;
use Time::HiRes qw/ sleep /;

my %hub = Test::Xet::Table::hub(undef, 'location = /metrics { xet_metrics; }');
my $t = Test::Xet->new(%hub, workers => 1,
	server => 'listen 127.0.0.1:%%PORT_8081%% sndbuf=2k;');

$t->token_key();
$t->run();

# A repo of 700 files, with names and titles that JSON must escape, 600 branches
# and tags, and 130 commits with descriptions.  There is also a bucket.

my $files = 700;

create(name => 'm', organization => 'me');
$t->post('/api/buckets/me/b', \'{}', { 'Content-Type' => 'application/json' });
$t->sql(<<'EOF_SQL');
INSERT INTO xet.hub_commits (repo_id, line, seq, oid, parent, made_at, who,
                             title, message)
SELECT 1, 0, n, substr(sha256(int8send(n)), 1, 20),
       CASE WHEN n = 2 THEN (SELECT oid FROM xet.hub_commits
                              WHERE repo_id = 1 AND seq = 1)
            ELSE substr(sha256(int8send(n - 1)), 1, 20) END,
       to_timestamp(1700000000 + n), 'me', 'title "' || n || '" ä',
       repeat('a line' || E'\n', n * 4)
  FROM generate_series(2, 130) n;
INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, hash, size,
                           sha256, made, made_at)
SELECT r, 0, 'd' || i % 3 || '/f "' || lpad(i::text, 4, '0') || '" ü',
       CASE WHEN r = 1 THEN 130 ELSE 1 END, 'd' || i % 3,
       CASE WHEN i % 9 = 0 THEN '\x'::bytea
            ELSE sha256(('f' || i)::bytea) END, i % 9 * 1000,
       sha256(('d' || i)::bytea), substr(sha256(int8send(130)), 1, 20),
       to_timestamp(1700000000)
  FROM generate_series(1, 700) i, generate_series(1, 2) r;
INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, made, made_at)
SELECT r, 0, 'd' || i, CASE WHEN r = 1 THEN 130 ELSE 1 END, '',
       substr(sha256(int8send(130)), 1, 20), to_timestamp(1700000000)
  FROM generate_series(0, 2) i, generate_series(1, 2) r;
UPDATE xet.hub_lines SET last = 130 WHERE repo_id = 1;
UPDATE xet.hub_lines SET files = 700;
UPDATE xet.hub_refs SET oid = substr(sha256(int8send(130)), 1, 20)
 WHERE repo_id = 1;
INSERT INTO xet.hub_refs
SELECT 1, k || '/x' || n, substr(sha256(int8send(n)), 1, 20)
  FROM generate_series(2, 130) n, unnest('{heads,tags}'::text[]) k;
INSERT INTO xet.hub_refs
SELECT 1, 'heads/y"' || n, substr(sha256(int8send(2)), 1, 20)
  FROM generate_series(1, 300) n;
UPDATE xet.hub_repos SET created_at = to_timestamp(1600000000),
       changed_at = to_timestamp(1700000000);
EOF_SQL

my @names = sort map { sprintf("d%d/f \"%04d\" \xc3\xbc", $_ % 3, $_) }
	1 .. $files;
my $m = '/api/models/me/m';
my $form = 'application/x-www-form-urlencoded';
my ($head) = $t->sql("SELECT encode(substr(sha256(int8send(130)), 1, 20),"
	. " 'hex')");

# --------------------------------------------------------------------------
# complete responses, each made by several statements

my %body;

for my $case (
	[ 'tree', "$m/tree/main?recursive=1", 2 ],
	[ 'titles', "$m/tree/main?recursive=1&expand=1", 11 ],
	[ 'an old tree', "$m/tree/$head/d1", 1 ],
	[ 'bucket', '/api/buckets/me/b/tree/?recursive=1', 2 ],
	[ 'info', $m, 3 ],
	[ 'blobs', "$m/revision/$head?blobs=true", 3 ],
	[ 'refs', "$m/refs", 3 ],
	[ 'commits', "$m/commits/main", 2 ],
	[ 'paths', "$m/paths-info/main", 2, join('&', map { 'paths='
		. escape($_) } reverse(@names), 'nope'), $form ],
	[ 'preupload', "$m/preupload/main", 3, JSON::PP::encode_json({ files =>
		[ map { { path => "n$_", size => $_ } } 1 .. 700 ] }),
		'application/json' ])
{
	my ($name, $uri, $least, $data, $type) = @$case;

	my $from = statements();
	my $r = defined $data
		? $t->post($uri, \$data, { 'Content-Type' => $type })
		: $t->get($uri);

	is($r->{status}, 200, "$name: status") or diag($r->summary());
	cmp_ok(statements() - $from, '>=', $least, "$name: in parts");
	is(!!$r->header_value('Content-Length'), $least == 1,
		"$name: a length where it is one part");
	ok(eval { JSON::PP::decode_json($r->{body}) }, "$name: is JSON");
	$body{$name} = $r;

	next if defined $data;

	my $h = $t->head($uri);

	is($h->{status}, 200, "$name: HEAD");
	is($h->header_value('Link') // '', $r->header_value('Link') // '',
		"$name: HEAD: the same link");
}

is(paths_of('tree'), join(' ', sort(@names, map { "d$_" } 0 .. 2)),
	'tree: all entries');
is(paths_of('titles'), paths_of('tree'), 'titles: all entries');
is($body{titles}->json()->[-1]{lastCommit}{title}, "title \"130\" \xe4",
	'titles: the last one has its title');
is(paths_of('bucket'), join(' ', @names), 'bucket: all objects');
is(paths_of('paths'), join(' ', reverse @names), 'paths: in their order');
is(join(' ', map { utf8($_->{rfilename}) }
	@{ $body{$_}->json()->{siblings} }), join(' ', @names), "$_: all files")
	for qw/ info blobs /;
is(join(' ', map { $_->{path} } @{ $body{preupload}->json()->{files} }),
	join(' ', map { "n$_" } 1 .. 700), 'preupload: all files');

# an LFS batch: the existence of objects is queried part by part

create(name => 'lfs', organization => 'me', files => [ map {
	{ path => "f$_", content => "object $_" } } 0, 255, 256, 699 ]);

my @objects = map { { oid => sha256_hex("object $_"), size => 1 } } 0 .. 699;
my $from = statements();
my $lfs = $t->post('/me/lfs.git/info/lfs/objects/batch',
	\JSON::PP::encode_json({ operation => 'download',
		transfers => [ 'basic' ], objects => \@objects }),
	{ 'Content-Type' => 'application/vnd.git-lfs+json' });

is($lfs->{status}, 200, 'LFS: status') or diag($lfs->summary());
is($lfs->header_value('Content-Type'), 'application/vnd.git-lfs+json',
	'LFS: type');
is(statements() - $from, 3, 'LFS: in parts');
is(join(' ', map { $_->{oid} } @{ $lfs->json()->{objects} }),
	join(' ', map { $_->{oid} } @objects), 'LFS: all objects');

my $found = $lfs->json()->{objects};
my @there = grep { $found->[$_]{actions} } 0 .. 699;

is("@there", '0 255 256 699', 'LFS: those that are there');
is($t->get($found->[699]{actions}{download}{href}
	=~ s!^http://[^/]+!!r)->{body}, 'object 699', 'LFS: the last one');

my $refs = $body{refs}->json();

is(scalar @{ $refs->{branches} }, 430, 'refs: branches');
is(scalar @{ $refs->{tags} }, 129, 'refs: tags');
is(join(' ', sort keys %$refs), 'branches converts pullRequests tags',
	'refs: and what else there is');

# --------------------------------------------------------------------------
# large pages have the same entries as small pages, which have one part each

for my $case ([ tree => "$m/tree/main?recursive=1&limit=" ],
	[ titles => "$m/tree/main?recursive=1&expand=1&limit=" ],
	[ bucket => '/api/buckets/me/b/tree/?recursive=1&limit=' ],
	[ commits => "$m/commits/main?limit=" ])
{
	my ($name, $uri) = @$case;
	my @found;

	for (my $next = "${uri}10"; $next && @found < 1000;) {
		my $r = $t->get($next);

		$next = link_of($r);
		push @found, substr($r->{body}, 1, -1);
	}

	if ($name eq 'commits') {
		@found = @found[0 .. 9];
	}

	ok('[' . join(',', grep { length } @found) . ']' eq $body{$name}{body},
		"$name: the same bytes");
}

# the next page begins after the last entry, for any number of parts per page

for my $limit (64, 100, 257, 499, 500, 501, 600, 703, 704) {
	for my $more ('', '&expand=1') {
		my @all;
		my $n = 0;

		my $next = "$m/tree/main?recursive=1$more&limit=$limit";

		for (; $next && $n < 50; $n++) {
			my $r = $t->get($next);

			$next = link_of($r);
			push @all, map { utf8($_->{path}) } @{ $r->json() };
		}

		is(join(' ', @all), paths_of('tree'), "limit $limit$more: all");
		is($n, int(703 / $limit) + 1, "limit $limit$more: pages");
	}
}

is($body{commits}->header_value('X-Total-Count'), 130, 'commits: the number');

my $rest = $t->get(link_of($body{commits}))->json();

is(scalar @{ $body{commits}->json() }, 100, 'commits: a page');
is(scalar @$rest, 30, 'commits: the rest of them');
is($rest->[0]{title}, "title \"30\" \xe4", 'commits: behind the page');

# --------------------------------------------------------------------------
# each page of a search reads a limited number of repos, and the next page
# continues after these repos

$t->sql(<<'EOF_SQL');
INSERT INTO xet.hub_repos (kind, owner, name, changed_at)
SELECT 1, 'o', CASE WHEN n IN (4990, 5010, 7000) THEN 'found' ELSE 'r' END
       || n, to_timestamp(1600000000 - n)
  FROM generate_series(1, 7000) n;
INSERT INTO xet.hub_lines (repo_id, line, last)
SELECT r.id, 0, 1 FROM xet.hub_repos r WHERE r.kind = 1;
INSERT INTO xet.hub_refs
SELECT r.id, 'heads/main', substr(sha256(int8send(1)), 1, 20)
  FROM xet.hub_repos r WHERE r.kind = 1;
EOF_SQL

my (@found, @pages);

for (my $next = '/api/datasets?search=found'; $next && @pages < 5;) {
	my $r = $t->get($next);

	$next = link_of($r);
	push @pages, scalar @{ $r->json() };
	push @found, map { $_->{id} } @{ $r->json() };
}

is(join(' ', @found), 'o/found4990 o/found5010 o/found7000',
	'search: all that there is');
is(join(' ', @pages), '1 2', 'search: in pages');
$t->sql('DELETE FROM xet.hub_repos WHERE kind = 1');

# --------------------------------------------------------------------------
# The server follows the pace of the client: it queries the next part after the
# client has read the previous one.  All parts come from one commit, even if
# commits are added in the meantime.

my @slow = ([ 'info', $m ], [ 'titles', "$m/tree/main?recursive=1&expand=1" ],
	[ 'blobs', "$m/revision/$head?blobs=true" ]);
my %slow = map { $_->[0] => slow($_->[1]) } @slow;

sleep(1);

$from = statements();

sleep(1);
is(statements(), $from, 'slow: no query while the client waits');

$t->sql(<<'EOF_SQL');
INSERT INTO xet.hub_commits (repo_id, line, seq, oid, parent, who, title)
SELECT 1, 0, 131, substr(sha256(int8send(131)), 1, 20),
       substr(sha256(int8send(130)), 1, 20), 'me', 'all gone';
UPDATE xet.hub_paths SET till = 131 WHERE repo_id = 1;
UPDATE xet.hub_lines SET last = 131, files = 0 WHERE repo_id = 1;
UPDATE xet.hub_refs SET oid = substr(sha256(int8send(131)), 1, 20)
 WHERE repo_id = 1 AND name = 'heads/main';
EOF_SQL

is(scalar @{ $t->get($m)->json()->{siblings} }, 0,
	'slow: meanwhile all is gone');

for my $case (@slow) {
	my $name = $case->[0];
	my ($status, $text) = taken($slow{$name});

	is($status, 'whole', "slow: $name: has an end");
	ok($text eq $body{$name}{body}, "slow: $name: the same bytes");
}

# --------------------------------------------------------------------------
# a later part is unavailable because the database stops, or the repo is
# deleted: the response is truncated, and does not look complete

my $error = $t->log_size();
my $old = "$m/revision/$head?blobs=true";
my $s = slow($old);

$t->pg_stop();

my ($status, $text) = taken($s);

is($status, 'broken', 'away: no end');
ok(length($text) && index($body{blobs}{body}, $text) == 0,
	'away: and nothing else than the beginning');
like($t->log($error), qr/a response of the Hub was truncated/, 'away: logged');
$t->pg_start();
wait_for(20, sub { $t->get($old)->{status} == 200 });

$s = slow($old);
$t->sql("UPDATE xet.hub_repos SET name = 'moved' WHERE id = 1");
($status, $text) = taken($s);
is($status, 'broken', 'gone: no end');
ok(length($text) && index($body{blobs}{body}, $text) == 0,
	'gone: and nothing else than the beginning');
$t->sql("UPDATE xet.hub_repos SET name = 'm' WHERE id = 1");

$s = slow($old, '1.0');
$t->sql("UPDATE xet.hub_repos SET name = 'moved' WHERE id = 1");
($status) = taken($s);
is($status, 'broken', 'HTTP/1.0: a reset and no end');
$t->sql("UPDATE xet.hub_repos SET name = 'm' WHERE id = 1");

is($t->get($old)->{body}, $body{blobs}{body}, 'there again');

# errors in the first part give the right status

is($t->get("$m/tree/$head/nope")->{status}, 404, 'no folder: 404');
is($t->get("$m/tree/nope")->{status}, 404, 'no revision: 404');
is($t->get('/api/models/me/nope')->{status}, 404, 'no repo: 404');
is($t->get("$m/commits/main?cursor=x")->{status}, 400, 'a bad cursor: 400');

$t->allow(qr/a response of the Hub was truncated/, qr/connection to .* lost/,
	qr/connecting to .* failed/, qr/failed, SQLSTATE 57P0/);
$t->done();

# --------------------------------------------------------------------------

sub create {
	my (%o) = @_;

	return $t->post('/api/repos/create', \JSON::PP::encode_json(\%o),
		{ 'Content-Type' => 'application/json' });
}

sub utf8 {
	my ($text) = @_;

	utf8::encode($text);
	return $text;
}

sub escape {
	return $_[0] =~ s/([^A-Za-z0-9._\/-])/sprintf('%%%02X', ord($1))/ger;
}

# Returns the URL of the next page; undef if it is the last page.

sub link_of {
	my ($r) = @_;

	return (($r->header_value('Link') // '')
		=~ m!<http://[^/]+(/[^>]+)>!)[0];
}

sub paths_of {
	my ($name) = @_;

	return join(' ', map { utf8($_->{path}) } @{ $body{$name}->json() });
}

sub statements {
	my ($n) = $t->get('/metrics')->{body}
		=~ /^xet_statements_total\{pg_pool="long",result="ok"\} (\d+)/m;

	return $n // -1;
}

# Opens a connection that sends a request and reads nothing before taken() is
# called.

sub slow {
	my ($uri, $version) = @_;

	$version //= '1.1';

	socket(my $s, AF_INET, SOCK_STREAM, IPPROTO_TCP) or die "socket: $!\n";
	setsockopt($s, SOL_SOCKET, SO_RCVBUF, 2048);
	connect($s, pack_sockaddr_in($t->port(8081), inet_aton('127.0.0.1')))
		or die "connect: $!\n";

	syswrite($s, join("\r\n", "GET $uri HTTP/$version", 'Host: localhost',
		'Connection: close', '', ''));
	sleep(0.5);

	return $s;
}

# Returns "whole" or "broken", and the part of the body that arrived.

sub taken {
	my ($s) = @_;

	my $text = '';
	my $n;

	local $SIG{ALRM} = sub { die "no more\n" };

	alarm(60);
	eval { 1 while $n = sysread($s, $text, 16384, length($text)) };
	alarm(0);

	my ($head, $body) = split(/\r\n\r\n/, $text, 2);

	return (defined $n ? 'whole' : 'broken', $body // '')
		if $head !~ /^Transfer-Encoding: chunked/mi;

	my $chunked = $body;
	my $end = 0;

	$body = '';

	while ($chunked =~ s/\A([0-9a-f]+)\r\n//i) {
		my $size = hex($1);

		$end = 1 if $size == 0;
		$body .= substr($chunked, 0, $size, '');
		substr($chunked, 0, 2, '') if length($chunked) >= 2;
	}

	return ($end ? 'whole' : 'broken', $body);
}
