#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# A public repo is hidden: it becomes private, perhaps moved, or is deleted.
# What others remember from before is then worth nothing, on two nodes with
# the shipped configuration: tokens, dedup answers, grants, and the names of
# xorbs.  Only signed URLs work until they expire.  Its owner goes on, and
# what others have registered stays.  A shard that arrives at the same time as
# the change either was first, or is refused.  A deleted branch and a squashed
# history hide nothing: commits stay readable by id.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ build_dir run_command wait_for /;

use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

my $t = Test::Xet->new(workers => 1);
my $far = Test::Xet->new(workers => 1, beside => $t);
my @nodes = ($t, $far);

for (@nodes) {
	$_->write_conf(conf($_));
	$_->allow(qr/xet: 4\d\d /);
	$_->run();
}

my $json = JSON::PP->new()->canonical();
my %who = ((map { $_ => token($_) } qw/ alice robin bob /), nobody => {});
my $seed = 0;
our @bases = ('/cas', '/api');

create('bob', 'bob/own', 1);

my %ends = (
	'private' => sub { return settings($_[0], 1) },
	'private again' => sub {
		settings($_[0], 1);
		settings($_[0], 0);

		return settings($_[0], 1);
	},
	'moved and private' => sub {
		my $to = $_[0] =~ s!/!/to_!r;

		post('alice', '/api/repos/move', $json->encode({
			fromRepo => $_[0], toRepo => $to }));

		return settings($to, 1);
	},
	'deleted' => sub {
		return remove($_[0]);
	},
	'deleted and made again' => sub {
		my $r = remove($_[0]);

		create('alice', $_[0], 0);

		return $r;
	}
);

for my $name (sort keys %ends) {
	hides($name, 'team/' . $name =~ s/ /_/gr, $ends{$name});
}

# twice at once

at_once($_) for 1 .. 12;

# a sweep removes files that were deleted from a bucket

$ends{swept} = sub {
	batch($_[0], map { { type => 'deleteFile', path => "f$_" } } 1, 2);
	$t->sql("UPDATE xet.hub_loose SET since = now() - interval '2 days'");

	return { status => $t->sql("SELECT CASE WHEN xet.hub_sweep('1 day',"
		. ' 1000) > 0 THEN 200 END') };
};

between($_) for sort keys %ends;

# done() would report descriptors in open_file_cache as leaked

for (reverse @nodes) {
	$_->write_conf(Test::Xet::default_conf());
	$_->reload();
	$_->check();
}

done_testing();

# --------------------------------------------------------------------------

sub conf {
	my ($node) = @_;

	my $text = $node->shipped_conf();

	$text =~ s/xet_auth off;/xet_auth token;/ or die;
	$text =~ s!xet_thread_pool xet;!$&
    xet_token_cache zone=xet_tokens:1m;
    xet_hub_public on;
    map \$xet_subject \$teams { "~^(alice|robin)\$" team; default ""; }
    xet_hub_owners \$teams;! or die;

	return $text;
}

sub token {
	my ($who) = @_;

	my ($status, $out) = run_command([ build_dir() . '/xet', 'token',
		'--key', $t->dir() . '/token.key', '--subject', $who,
		'--scope', 'admin' ]);

	die "xet token: $out\n" if $status != 0;

	return { Authorization => 'Bearer ' . $out =~ s/\s+\z//r };
}

sub post {
	my ($who, $uri, $body, $type) = @_;

	return $t->post($uri, \$body, { %{ $who{$who} },
		'Content-Type' => $type // 'application/json' });
}

sub create {
	my ($who, $repo, $private) = @_;

	my ($owner, $name) = split(m!/!, $repo);

	is(post($who, '/api/repos/create', $json->encode({ name => $name,
		organization => $owner, private => $private ? \1 : \0 }))
		->{status}, 200, "a repo $repo");
}

sub settings {
	return $t->http('PUT', "/api/models/$_[0]/settings", $who{alice},
		\$json->encode({ private => $_[1] ? \1 : \0 }));
}

sub remove {
	my ($owner, $name) = split(m!/!, $_[0]);

	return $t->http('DELETE', '/api/repos/delete', { %{ $who{alice} },
		'Content-Type' => 'application/json' }, \$json->encode({
		name => $name, organization => $owner }));
}

sub commit {
	my ($repo, @lines) = @_;

	return post('alice', "/api/models/$repo/commit/main", join('',
		map { $json->encode($_) . "\n" } { key => 'header',
			value => { summary => 's' } }, @lines),
		'application/x-ndjson');
}

# Commits a file of one chunk, which is a xorb with the chunk's hash.

sub file {
	my ($repo) = @_;

	my $data = random_bytes(++$seed, 5000);
	my $r = commit($repo, { key => 'file', value => { path => 'f.bin',
		encoding => 'base64', content => encode_base64($data, '') } });

	is($r->{status}, 200, "$repo: a file") or diag($r->{body});

	return { %{ make_xorb($data, sizes => [ 5000 ]) }, data => $data };
}

# Puts such a file into a bucket.

sub put {
	my ($bucket, $n) = @_;

	my $data = random_bytes(++$seed, 5000);
	my $r = $t->put('/cas/v1/files', \$data, given($t, 'alice', $bucket,
		'write'));

	is($r->{status}, 200, "$bucket: an uploaded file") or diag($r->{body});
	is(batch($bucket, { type => 'addFile', path => "f$n", mtime => 0,
		xetHash => $r->json()->{hash} })->{status}, 200,
		"$bucket: a file");

	return { %{ make_xorb($data, sizes => [ 5000 ]) }, data => $data };
}

sub batch {
	my ($bucket, @ops) = @_;

	return post('alice', "/api/buckets/$bucket/batch", join('',
		map { $json->encode($_) . "\n" } @ops), 'application/x-ndjson');
}

# Returns a token that the Hub issues.

sub given {
	my ($node, $who, $repo, $scope) = @_;

	my $r = $node->get($repo =~ /bucket/
		? "/api/buckets/$repo/xet-$scope-token"
		: "/api/models/$repo/xet-$scope-token/main", $who{$who});

	return $r->{status} == 200
		? { Authorization => 'Bearer ' . $r->json()->{accessToken} }
		: $r->{status};
}

# Returns the path of the endpoint of a caller who can write.

sub endpoint {
	my ($who, $repo) = @_;

	return $far->get("/api/models/$repo/xet-write-token/main",
		$who{$who})->json()->{casUrl} =~ s!^http://[^/]+!!r;
}

sub shard {
	my ($xorb) = @_;

	return make_shard({ files => [ { terms => [ { xorb => $xorb->{hash},
		start => 0, end => 1, chunks => $xorb->{chunks} } ],
		verification => JSON::PP::true } ], xorbs => [] });
}

# Returns what a caller gets of a xorb: the routes that do not answer like those
# for something that does not exist.

sub gets {
	my ($node, $xorb, $repo, $tokens) = @_;

	my $shard = shard($xorb);
	my $hash = $shard->{files}[0]{hash};
	my @got;

	for my $base (@bases) {
		for my $kind (sort keys %$tokens) {
			my $auth = $tokens->{$kind};

			push @got, "$kind $base: $_->[1]" for grep {
				$node->http($_->[0], "$base/v1/$_->[1]",
					$auth)->{status} == 200
			} ([ GET => "files/$hash" ],
				[ GET => "reconstructions/$hash" ],
				[ GET => "chunks/default/$xorb->{hash}" ],
				[ HEAD => "xorbs/default/$xorb->{hash}" ]);

			push @got, "$kind $base: a shard"
				if $node->post("$base/v1/shards",
					\$shard->{bytes}, $auth)->{status}
					== 200;
		}
	}

	push @got, 'by name' if $node->get("/$repo/resolve/main/f.bin",
		$tokens->{own} // {})->{body} eq $xorb->{data};

	for my $route (qw! resolve raw !) {
		my $r = $node->head("/$repo/$route/main/f.bin",
			$tokens->{own} // {});

		push @got, "$route of its name" if $r->{status} == 200;
	}

	# the rules of its .gitignore, by a caller who may not write

	my $body = '{"files":[{"path":"a.log","size":1}]}';

	push @got, 'preupload' if $node->post(
		"/api/models/$repo/preupload/main", \$body, { %{ $who{bob} },
		'Content-Type' => 'application/json' })
		->{body} =~ /shouldIgnore/;

	return join(', ', map { s/[0-9a-f]{64}/HASH/gr } @got);
}

sub hides {
	my ($name, $repo, $end) = @_;

	create('alice', $repo, 0);

	my $xorb = file($repo);

	# what people remember

	my %bob = (own => $who{bob}, read => given($t, 'bob', $repo, 'read'),
		write => given($t, 'bob', 'bob/own', 'write'));
	my $endpoint = endpoint('bob', 'bob/own');

	like($endpoint, qr!/e\d+$!, "$name: bob has an endpoint");
	local @bases = (@bases, $endpoint);

	my %nobody = (read => given($t, 'nobody', $repo, 'read'));

	for my $i (0, 1) {
		like(gets($nodes[$i], $xorb, $repo,
			{ read => $bob{read} }), qr!read /cas: files!,
			"$name: node $i: bob can read it");
		like(gets($nodes[$i], $xorb, $repo, \%nobody),
			qr!read /cas: files.*raw of its name!,
			"$name: node $i: anybody can");
		is($nodes[$i]->head("/cas/v1/xorbs/default/$xorb->{hash}",
			$bob{write})->{status}, 200,
			"$name: node $i: bob may use it");
	}

	my ($fetch) = map { @$_ } values %{ $t->get('/cas/v1/reconstructions/'
		. shard($xorb)->{files}[0]{hash}, $bob{read})->json()
		->{fetch_info} };
	my $url = $fetch->{url} =~ s!^http://[^/]+!!r;
	my %range = (Range => "bytes=$fetch->{url_range}{start}-"
		. $fetch->{url_range}{end});

	is($end->($repo)->{status}, 200, "$name: done");
	isnt(endpoint('bob', 'bob/own'), $endpoint, "$name: bob forgets");
	is($_->get($url, \%range)->{status}, 206, "$name: a signed URL works")
		for @nodes;

	nothing($name, $_, $xorb, $repo, \%bob, \%nobody) for 0, 1;

	return if $name !~ /^private/;

	# its owner and her team go on

	for my $who (qw/ alice robin /) {
		ok($far->get("/$repo/resolve/main/f.bin", $who{$who})->{body}
			eq $xorb->{data}, "$name: $who reads it");
	}

	my $own = shard($xorb);

	is($far->post('/cas/v1/shards', \$own->{bytes},
		given($far, 'alice', $repo, 'write'))->{status}, 200,
		"$name: alice uses it");
	is(given($far, 'bob', $repo, 'read'), 404, "$name: no token for bob");
}

# The last byte of a shard of bob and the change are sent to two nodes at the
# same moment.

sub at_once {
	my ($n) = @_;

	my $repo = "team/race$n";

	create('alice', $repo, 0);

	my $xorb = file($repo);
	my $shard = shard($xorb);
	my $auth = given($far, 'bob', 'bob/own', 'write');
	my $bytes = $shard->{bytes};
	my $c = $far->http_start('POST', '/cas/v1/shards', { %$auth,
		'Content-Length' => length($bytes) }, substr($bytes, 0, -1));
	my $body = '{"private":true}';
	my $s = $t->http_start('PUT', "/api/models/$repo/settings",
		{ %{ $who{alice} }, 'Content-Length' => length($body) },
		substr($body, 0, -1));

	for ($n % 2 ? ([ $c, $bytes ], [ $s, $body ])
		: ([ $s, $body ], [ $c, $bytes ]))
	{
		$_->[0]->send(substr($_->[1], -1));
	}

	is($s->response('PUT', timeout => 30)->{status}, 200,
		"at once, $n: private");

	my $status = $c->response('POST', timeout => 30)->{status};

	# 503: it was checked before, and was too late

	like($status, qr/^(200|400|503)$/, "at once, $n: the shard: $status");

	# after both, only what was registered before is there

	my $hash = $shard->{files}[0]{hash};
	my $read = given($t, 'bob', 'bob/own', 'read');

	is($far->get("/cas/v1/files/$hash", $read)->{status},
		$status == 200 ? 200 : 404, "at once, $n: reads as it was");
	is($far->post('/cas/v1/shards', \$bytes, $auth)->{status},
		$status == 200 ? 200 : 400, "at once, $n: again");
	$_->close() for $c, $s;
}

# A shard of bob was checked, and is registered when the repo is hidden already.

# Checks that neither bob nor others get anything.  A machine may send plans of
# xet_plan_cache for two seconds after a change on another machine, or by SQL.

sub nothing {
	my ($name, $i, $xorb, $repo, @callers) = @_;

	my $plans = $i || $name eq 'swept' ? qr!\w+ \S+: reconstructions/HASH!
					   : qr/none/;

	for my $who ('bob', 'others') {
		my $tokens = shift(@callers);
		my $got = gets($nodes[$i], $xorb, $repo, $tokens);

		is(join(', ', grep { !/^$plans\z/ } split(/, /, $got)), '',
			"$name: node $i: nothing for $who");
		ok(wait_for(5, sub { gets($nodes[$i], $xorb, $repo, $tokens)
			eq '' }), "$name: node $i: not even a plan for $who");
	}
}

sub between {
	my ($name) = @_;

	my $repo = ($name eq 'swept' ? 'team/bucket_' : 'team/between_')
		. $name =~ s/ /_/gr;
	my ($xorb, $kept);

	if ($name eq 'swept') {
		is(post('alice', "/api/buckets/$repo", '{}')->{status}, 200,
			"a bucket $repo");
		($xorb, $kept) = map { put($repo, $_) } 1, 2;

	} else {
		create('alice', $repo, 0);
		($xorb, $kept) = map { file($repo) } 1, 2;
	}

	my $auth = given($far, 'bob', 'bob/own', 'write');
	my $read = given($t, 'bob', 'bob/own', 'read');
	my ($shard, $before) = map { shard($_) } $xorb, $kept;

	is($far->post('/cas/v1/shards', \$before->{bytes}, $auth)->{status},
		200, "between, $name: bob registers a file before");

	my $hold = $t->pg_session();

	$hold->run('BEGIN');
	$hold->run("SELECT pg_advisory_xact_lock(hashtext('xet.repos'),"
		. ' hashint8(r.id)) FROM xet.repos r JOIN xet.hub_repos h'
		. ' ON xet.hub_store(h.store) = r.name'
		. " WHERE h.owner = 'bob' AND h.name = 'own'");

	my @c = map { $far->http_start('POST', '/cas/v1/shards', { %$auth,
		'Content-Length' => length($_->{bytes}) }, $_->{bytes}) }
		$shard, $before;

	ok(wait_for(20, sub { $t->sql('SELECT count(*) FROM pg_stat_activity'
		. " WHERE wait_event_type = 'Lock'") == 2 }),
		"between, $name: the shards wait");
	is($ends{$name}->($repo)->{status}, 200, "between, $name: hidden");
	$hold->run('COMMIT');

	is_deeply([ map { $_->response('POST', timeout => 30)->{status} } @c ],
		[ 503, 200 ], "between, $name: only the former file is kept");
	$_->close() for @c;

	is($far->post('/cas/v1/shards', \$shard->{bytes}, $auth)->{status},
		400, "between, $name: again");

	for my $node (@nodes) {
		is($node->get("/cas/v1/files/$shard->{files}[0]{hash}", $read)
			->{status}, 404, "between, $name: bob reads nothing");
		ok($node->get("/cas/v1/files/$before->{files}[0]{hash}", $read)
			->{body} eq $kept->{data},
			"between, $name: and what he had");
	}
}
