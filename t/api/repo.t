#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Repos: a file is visible to tokens of the repos that have it, and to everyone
# if one of these repos is public.  For any other caller, on any route, the file
# does not exist.  Repos share xorbs, but a reader of one file gets no byte of
# another file.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

use JSON::PP ();

my $t = Test::Xet->new(workers => 2, Test::Xet::Token::repos(<<'EOC'));
location /wide/ {
            xet_api;
            xet_api_base /wide;
            xet_auth token;
            xet_access repo;
            xet_dedup_scope store;
        }
EOC

$t->token_key();
$t->run();
$t->fds_mark();

# --------------------------------------------------------------------------
# one xorb, a file of each repo in it, and one file that both repos have

my $xorb = make_xorb(random_bytes(1, 2000000), sizes => [ 50000 ]);
my @chunks = @{ $xorb->{chunks} };

is(post('/api/v1/xorbs/default/' . $xorb->{hash}, $xorb->{bytes}, 'a/a')
	->{status}, 200, 'xorb');

my %files = (
	a => file('a/a', 0, 10), b => file('b/b', 10, 20),
	both => file('a/a', 20, 30)
);

is(file('b/b', 20, 30), $files{both}, 'the same file in both');

# --------------------------------------------------------------------------
# which token sees which file

my %sees = (
	'a/a' => [ qw/ a both / ], 'b/b' => [ qw/ b both / ], 'c/c' => [],
	'' => []
);

for my $repo (sort keys %sees) {
	my %seen = map { $_ => 1 } @{ $sees{$repo} };

	for my $name (sort keys %files) {
		my $want = $seen{$name} ? 200 : 404;

		for my $route ('/api/v1/reconstructions/',
			'/api/v2/reconstructions/', '/api/reconstructions/')
		{
			is(get("$route$files{$name}", $repo)->{status}, $want,
				"'$repo' $route $name");
		}

		is(get("/api/v1/files/$files{$name}", $repo, $_)->{status},
			$want, "'$repo' $_ $name") for qw/ GET HEAD /;
		is(get("/api/v2/file-chunk-hashes/$files{$name}", $repo, 'GET',
			{ 'X-Range-Dirty' => 'bytes=0-9' })->{status}, $want,
			"'$repo' chunk hashes $name");
	}
}

# responses for hidden and missing files are equal, including the headers

my $r;

for my $case ([ 'GET', '/api/v1/reconstructions/' ],
	[ 'GET', '/api/reconstructions/' ],
	[ 'GET', '/api/v2/reconstructions/' ],
	[ 'GET', '/api/v2/reconstructions/', { Range => 'bytes=5-9' } ],
	[ 'GET', '/api/v2/reconstructions/', { Range => 'bytes=99999999-' } ],
	[ 'HEAD', '/api/v1/files/' ], [ 'DELETE', '/api/v1/files/' ],
	[ 'GET', '/api/v1/files/' ],
	[ 'GET', '/api/v1/files/', { Range => 'bytes=99999999-' } ],
	[ 'GET', '/api/v1/files/', { 'If-None-Match' => '*' } ],
	[ 'GET', '/api/v2/file-chunk-hashes/',
		{ 'X-Range-Dirty' => 'bytes=0-9' } ],
	[ 'GET', '/api/v1/reconstructions?file_id=' ])
{
	my ($method, $route, $more) = @$case;
	my @told = map { get("$route$_", 'a/a', $method, $more) }
		$files{b}, 'd' x 64;

	# the batch names the requested files

	is($told[0]{status}, $told[1]{status}, "$method $route: status");
	is($told[0]{body} =~ s/$files{b}//gr, $told[1]{body} =~ s/d{64}//gr,
		"$method $route: hidden and missing are told alike");
	is_deeply(headers($told[0]), headers($told[1]),
		"$method $route: also in headers");
}

# --------------------------------------------------------------------------
# a reader of one file: every range of the shared xorb

my $plan = get("/api/v1/reconstructions/$files{a}", 'a/a')->json();
my $entry = $plan->{fetch_info}{$xorb->{hash}}[0];
my ($path) = $entry->{url} =~ m!^http://[^/]+(/.*)!;
my ($first, $last) = @{ $entry->{url_range} }{qw/ start end /};

is($first, 0, 'own range: begins');
is($last, $chunks[9]{stored_end} - 1, 'own range: ends');

# from each chunk to each other chunk: the exact range, and one byte more or
# less on either side; also as the second range, after a signed one

my ($leaks, $own, $asked, $refused) = (0, 0, 0, 0);
my ($c, $requests);

# uses a new connection after 500 requests; nginx closes one after 1000

sub ask_range {
	my ($list) = @_;

	$c = $t->connect() if $requests++ % 500 == 0;

	return $c->exchange('GET', $path, { Range => "bytes=$list" });
}

sub try_range {
	my ($list, @ranges) = @_;

	my $r = ask_range($list);
	my $good = @ranges == 1 && !grep { $_->[0] > $_->[1]
		|| $_->[0] < $first || $_->[1] > $last } @ranges;

	$asked++;

	if ($good) {
		$own++ if $r->{status} == 206
			&& length($r->{body}) == $ranges[0][1] - $ranges[0][0]
				+ 1;
		return;
	}

	$refused++;
	$leaks++ if $r->{status} != 403 || length($r->{body}) > 500;
}

for my $i (0 .. $#chunks) {
	for my $j ($i .. $#chunks) {
		my ($from, $to) = ($chunks[$i]{stored_start},
			$chunks[$j]{stored_end} - 1);

		try_range("$_->[0]-$_->[1]", $_)
			for [ $from, $to ], [ $from, $to + 1 ],
			[ $from + 1, $to - 1 ],
			$from ? [ $from - 1, $to ] : ();

		try_range("0-0,$from-$to", [ 0, 0 ], [ $from, $to ])
			if $i && ($j == $i || $j >= 9);
	}
}

for my $at ($last - 2 .. $last + 3) {
	try_range("$at-$at", [ $at, $at ]);
	is(ask_range($_)->{status}, 403, "not by bytes=$_") for "$at-", "-$at";
}

$c->close();

is($own, $asked - $refused, 'own ranges are served');
cmp_ok($own, '>', 150, 'many own ranges');
cmp_ok($refused, '>', 3000, "others' ranges are refused");
is($leaks, 0, 'no byte of another file');
is($t->get($path)->{status}, 403, 'not without a range');
is(get("/api/v1/xorbs/default/$xorb->{hash}", 'a/a')->{status}, 403,
	'not the complete xorb');
is(get("/api/v1/xorbs/default/$xorb->{hash}", 'a/a', 'HEAD')->{status}, 200,
	'HEAD shows that the xorb exists');

# --------------------------------------------------------------------------
# writing

is(post('/api/v1/shards', shard(0, 5)->{bytes}, undef)->{status}, 403,
	'a token of no repo registers nothing');
is(post('/api/v1/shards', shard(0, 5, 0)->{bytes}, 'a/a')->{status}, 400,
	'without verification hashes nobody has shown to have the data');

my $again = shard(0, 10);

is(post('/api/v1/shards', $again->{bytes}, 'a/a')->json()->{result}, 0,
	'the file is known in this repo');
is(post('/api/v1/shards', $again->{bytes}, 'c/c')->json()->{result}, 1,
	'the file is new in another repo');
is(get("/api/v1/reconstructions/$files{a}", 'c/c')->{status}, 200,
	'then the repo sees it');

# --------------------------------------------------------------------------
# deleting removes only the reference of one repo; other repos keep theirs

is(get("/api/v1/files/$files{a}", 'b/b', 'DELETE')->{status}, 404,
	"delete: another repo's file");
is($t->http('DELETE', "/api/v1/files/$files{a}",
	$t->auth('read', 'c/c'))->{status}, 403, 'delete: not by readers');
is(get("/api/v1/files/$files{a}", 'c/c', 'DELETE')->{status}, 204, 'delete');
is(get("/api/v1/reconstructions/$files{a}", 'c/c')->{status}, 404,
	'delete: gone here');
is(get("/api/v1/reconstructions/$files{a}", 'a/a')->{status}, 200,
	'delete: others keep it');
is(get("/api/v1/files/$files{a}", 'c/c', 'DELETE')->{status}, 404,
	'delete: again');

# --------------------------------------------------------------------------
# public repos

is($t->sql("select xet.repo_set_public('b/b', true)"), 't', 'public');
is(get("/api/v1/reconstructions/$files{b}", 'c/c')->{status}, 200,
	'public: visible to all');
is(get("/api/v1/reconstructions/$files{b}", '')->{status}, 200,
	'public: to tokens without a repo');
is(get("/api/v1/files/$files{b}", 'c/c', 'DELETE')->{status}, 404,
	'public: only reads');
$t->sql("select xet.repo_set_public('b/b', false)");
is(get("/api/v1/reconstructions/$files{b}", 'c/c')->{status}, 404,
	'public: not any more');

# --------------------------------------------------------------------------
# dedup: across repos, or within one

my $chunk = $chunks[0]{hash};

is(get("/wide/v1/chunks/default/$chunk", 'c/c')->{status}, 200,
	'dedup: store');
is(get("/api/v1/chunks/default/$chunk", 'c/c')->{status}, 404,
	'dedup: repo, not of others');
is(get("/api/v1/chunks/default/$chunk", 'a/a')->{status}, 200,
	'dedup: repo, own');

$t->done();

# --------------------------------------------------------------------------

sub shard {
	my ($start, $end, $verification) = @_;

	return make_shard({ files => [ {
		verification => $verification // 1
			? JSON::PP::true : JSON::PP::false,
		terms => [ { xorb => $xorb->{hash}, start => $start,
			end => $end, chunks => [ @chunks[$start .. $end - 1] ]
			} ] } ], xorbs => [] });
}

sub file {
	my ($repo, $start, $end) = @_;

	my $shard = shard($start, $end);
	my $r = post('/api/v1/shards', $shard->{bytes}, $repo);

	die "shard: $r->{status} $r->{body}\n" if $r->{status} != 200;

	return $shard->{files}[0]{hash};
}

sub headers {
	my ($r) = @_;

	return { map { $_ => $r->{headers}{$_} } grep { $_ ne 'date' }
		keys %{ $r->{headers} } };
}

sub get {
	my ($path, $repo, $method, $more) = @_;

	$method ||= 'GET';

	my $scope = $method eq 'DELETE' ? 'delete' : 'read';

	return $t->http($method, $path, { %{ $t->auth($scope, $repo) },
		%{ $more || {} } });
}

sub post {
	my ($path, $body, $repo) = @_;

	return $t->post($path, \$body, $t->auth('write', $repo // ''));
}
