#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Random operations on a Hub, checked against a model of names and rights.
# t/soak/soak.pl does the same for data that is addressed by hashes.
#
#     SECONDS=3600 SEED=1 perl t/soak/hub.pl
#
# Two tenants and a caller without a token create, move and delete repos, make
# them public or private, commit, create branches and tags, get tokens, upload
# with earlier tokens, and read a mirrored Hub.  At the same time garbage is
# collected without a grace period, and workers are killed now and then.  A step
# is up to four concurrent acts on different repos.
#
# What must hold after each step:
#
#     rights    an act succeeds for permitted callers only
#     names     each caller lists and reads exactly its own and the public
#               repos; a hidden repo and a missing one give the same response
#     bytes     a path at a branch returns the bytes of the last commit; at a
#               commit, it returns the bytes of this commit, even after others
#     given     a token issued for a repo gives access to the repo until the
#               repo is deleted or becomes private, and never after that
#     hashes    a file of a Hub repo can't be read by its hash, neither with a
#               tenant's token nor without a token
#     answers   no lasting 5xx, no alert, no report of a sanitizer
#     left      after all repos are deleted, a collection leaves no xorb
#
#     SEED      a number; by default random
#     SECONDS   duration, 120
#     STEPS     number of steps, unlimited
#     VERBOSE   prints each act

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/../lib";

use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;
use Test::More ();
use Time::HiRes qw/ sleep time /;

use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ root slurp /;
use Test::Xet::Soak::Random;
use Test::Xet::Table;
use Test::Xet::Token;

$| = 1;

my %env = (SECONDS => 120, STEPS => 0, VERBOSE => 0, SEED => int(rand(1 << 30)),
	map { $_ => $ENV{$_} } grep { defined $ENV{$_} && $ENV{$_} ne '' }
	qw/ SEED SECONDS STEPS VERBOSE /);

$ENV{ASAN_OPTIONS} //= 'detect_leaks=0:detect_odr_violation=0';
$ENV{UBSAN_OPTIONS} //= 'print_stacktrace=1';

print "seed $env{SEED}\n";

my @tenants = qw/ alice bob /;
my @callers = (@tenants, 'nobody');
my $json = JSON::PP->new()->utf8()->canonical();

# Repos by "kind/owner/name": { id, kind, owner, name, private, epoch, branches
# { name => { oid, files } }, commits { oid => files }, held { hash => 1 } }.
# A repo keeps its object when it is moved; gone is set when it is deleted.

my %repos;
my %used;             # names used so far; a name is never reused
my @given;            # { headers, repo, epoch, scope }
my (%bytes, %answers);
my ($step, $serial) = (0, 0);

my ($far, $t) = servers();
my %auth = (nobody => {});
my $collector;
my ($end, $again) = (time() + $env{SECONDS}, 0);

while (time() < $end && (!$env{STEPS} || $step < $env{STEPS})) {
	$step++;

	# a token is valid for an hour

	if (time() > $again) {
		delete $t->{tokens};
		$auth{$_} = $t->auth('admin', "\@$_") for @tenants;
		$again = time() + 1800;
	}

	step(Test::Xet::Soak::Random->new($env{SEED}, $step));
}

my $steps = $step;

last_step();

print "$steps steps, ", join(', ', map { "$answers{$_} $_" }
	sort keys %answers), "\n";

exit(0);

# --------------------------------------------------------------------------
# the servers

sub servers {
	my $hub = slurp(root() . '/conf/xet_hub.conf');

	my $far = Test::Xet->new(log => 'notice', timeout => 7 * 86400,
		http => Test::Xet::Token::token_directive(),
		locations => 'xet_auth off; include %%DIR%%/xet_hub.conf;'
			. ' location @xet_error { xet_error; }');

	$far->write_file('xet_hub.conf', $hub);
	$far->token_key();
	$far->run();

	my $t = Test::Xet->new(workers => 2, log => 'notice',
		timeout => 7 * 86400,
		directives => { xet_gc => 'on grace=0s interval=366d' },
		http => Test::Xet::Token::token_directive()
			. "\n    include %%DIR%%/xet_hub_mirror.conf;"
			. "\n    resolver 127.0.0.1:%%PORT_8083%%;",
		locations => Test::Xet::Token::token_location() . <<'END');
        xet_auth token;
        xet_hub_public on;

        include %%DIR%%/xet_location.conf;
        include %%DIR%%/xet_hub.conf;
        include %%DIR%%/xet_hub_upstream.conf;
END

	my $store = $t->store();

	$t->write_file('xet_location.conf', slurp(root()
		. '/conf/xet_location.conf') =~ s!/var/lib/xet\b!$store!gr);
	$t->write_file('xet_hub.conf', $hub);
	Test::Xet::Table::mirror($t, 'http://127.0.0.1:' . $far->port(8080),
		'1s');
	$t->token_key();
	$t->run();

	$far->post('/api/repos/create', \'{"organization":"far","name":"m"}');
	$far->post('/api/models/far/m/commit/main', \lines('a',
		[ { path => 'a', data => 'from afar' } ]));

	return ($far, $t);
}

# --------------------------------------------------------------------------
# a step: concurrent acts on different repos, and then the checks

sub step {
	my ($rng) = @_;

	my %acts = (create => 6, commit => 16, drop => 4, branch => 8,
		unbranch => 2, tag => 2, settings => 6, move => 3, delete => 3,
		token => 8, upload => 6);
	my (%busy, @acts);

	for (1 .. 1 + $rng->int(4)) {
		my $name = $rng->weighted(\%acts);
		my $act = __PACKAGE__->can("act_$name")->($rng, \%busy) or next;

		push @acts, { %$act, name => $name };
	}

	$collector //= collect() if $rng->chance(15);

	$_->{c} = send_act($_) for @acts;
	$t->kill_worker() if $rng->chance(1);

	finish($_) for @acts;
	check($rng) for 1 .. 8;

	wait_collector() if $collector && $collector->{step} < $step - 2;
}

sub send_act {
	my ($act) = @_;

	print "$step $act->{name} $act->{who} $act->{method} $act->{uri}\n"
		if $env{VERBOSE};

	return $t->http_start($act->{method}, $act->{uri}, { %{ $act->{headers}
		|| $auth{$act->{who}} }, 'Content-Length'
		=> length($act->{body} // '') }, $act->{body}, timeout => 60);
}

# If the response is lost or a 5xx, the request is retried, as clients do.  The
# act may already have been done, so the statuses in "again" are then allowed,
# too.

sub finish {
	my ($act) = @_;

	my $r = eval { $act->{c}->response($act->{method}) };
	my @expected = @{ $act->{expected} };

	for (1 .. 40) {
		last if $r && ($r->{status} // 0) && $r->{status} < 500;

		push @expected, @{ $act->{again} || [] };
		sleep(0.25);
		$r = eval { send_act($act)->response($act->{method}) };
	}

	my $status = $r ? $r->{status} // 0 : 0;

	$answers{$status}++;
	violation('rights', "$act->{name} by $act->{who}: $act->{method} "
		. "$act->{uri}: $status, not @expected: " . ($r->{body} // ''))
		unless grep { $_ == $status } @expected;

	$act->{done}->($r, $status) if $act->{done}
		&& ($status < 300 || grep { $_ == $status }
			@{ $act->{again} || [] });
}

sub violation {
	my ($class, $text) = @_;

	print "VIOLATION $class, seed $env{SEED}, step $step: $text\n";
	print "$_: ", $repos{$_}{private} ? 'private' : 'public', ', ',
		join(' ', sort keys %{ $repos{$_}{held} }), "\n"
		for sort keys %repos;
	print join("\n", $t->sql($ENV{QUERY})), "\n" if $ENV{QUERY};
	Test::More::diag($_) for grep { /alert|emerg|ERROR:|runtime error/ }
		split(/\n/, $t->log());
	exit(1);
}

# --------------------------------------------------------------------------
# acts

# Picks a repo that no other act of this step uses.

sub repo {
	my ($rng, $busy) = @_;

	my @free = grep { !$busy->{$_} } sort keys %repos;

	return undef unless @free;

	my $key = $rng->pick(@free);

	$busy->{$key} = 1;

	return $repos{$key};
}

sub api { return "/api/$_[0]{kind}/$_[0]{owner}/$_[0]{name}" }

# Returns the expected statuses of a write: @good for the owner, errors for
# other callers.

sub expected {
	my ($repo, $who, @good) = @_;

	return $who eq $repo->{owner} ? [ @good ]
		: $who eq 'nobody' ? [ 401 ]
		: $repo->{private} ? [ 404 ] : [ 403 ];
}

# Returns the statuses that are also allowed if the request is retried.

sub again { return $_[1] eq $_[0]{owner} ? [ 404 ] : [] }

sub by { return $_[0]->chance(75) ? $_[1]{owner} : $_[0]->pick(@callers) }

sub data {
	my ($rng) = @_;

	my $n = $rng->int(40);

	return $bytes{$n} //= $n == 0 ? '' : mix($n, ($n * 7919) % 60000 + 1)
		. ($n % 3 ? '' : mix(1, 70000));
}

sub lines {
	my ($title, $ops) = @_;

	return join("\n", map { $json->encode($_) } { key => 'header',
		value => { summary => $title } }, map { defined $_->{data}
		? { key => 'file', value => { path => $_->{path},
			encoding => 'base64',
			content => encode_base64($_->{data}, '') } }
		: { key => 'deletedFile', value => { path => $_->{path} } } }
		@$ops) . "\n";
}

sub act_create {
	my ($rng, $busy) = @_;

	my $owner = $rng->pick(@tenants);
	my $who = $rng->chance(85) ? $owner : $rng->pick(@callers);
	my $kind = $rng->pick(qw/ models datasets /);
	my $private = $rng->chance(50);
	my $name = 'r' . ++$serial;

	return undef if keys %repos > 10;

	return { who => $who, method => 'POST', uri => '/api/repos/create',
		body => $json->encode({ organization => $owner, name => $name,
			type => substr($kind, 0, -1),
			private => $private ? \1 : \0 }),
		expected => $who eq $owner ? [ 200 ]
			: $who eq 'nobody' ? [ 401 ] : [ 403 ],
		again => $who eq $owner ? [ 409 ] : [],
		done => sub {
			$repos{"$kind/$owner/$name"} = { kind => $kind,
				owner => $owner, name => $name, epoch => 0,
				private => $private, commits => {}, held => {},
				branches => { main => { files => {} } } };
		} };
}

sub act_commit {
	my ($rng, $busy) = @_;

	my $repo = repo($rng, $busy) or return undef;
	my $branch = $rng->pick(sort keys %{ $repo->{branches} });
	my %files = %{ $repo->{branches}{$branch}{files} };
	my $who = by($rng, $repo);
	my %ops;

	for (1 .. 1 + $rng->int(4)) {
		my $path = $rng->pick('a', 'b', 'd/a', 'd/e/b', 'x y', "\x{e4}");

		$ops{$path} = { path => $path, data => data($rng) };
	}

	$files{$_} = $ops{$_}{data} for keys %ops;

	return { who => $who, method => 'POST', uri => api($repo)
		. "/commit/$branch", body => lines("commit $step",
			[ map { $ops{$_} } sort keys %ops ]),
		expected => expected($repo, $who, 200),
		done => sub { committed($repo, $branch, \%files, $_[0]) } };
}

sub committed {
	my ($repo, $branch, $files, $r) = @_;

	my $oid = $r->json()->{commitOid};

	$repo->{branches}{$branch} = { oid => $oid, files => $files };
	$repo->{commits}{$oid} = $files;
}

sub act_drop {
	my ($rng, $busy) = @_;

	my $repo = repo($rng, $busy) or return undef;
	my $branch = $rng->pick(sort keys %{ $repo->{branches} });
	my %files = %{ $repo->{branches}{$branch}{files} };
	my $who = by($rng, $repo);

	return undef unless %files;

	my $path = $rng->pick(sort keys %files);

	delete $files{$path};

	return { who => $who, method => 'POST', uri => api($repo)
		. "/commit/$branch", body => lines("drop $step",
			[ { path => $path } ]),
		expected => expected($repo, $who, 200), again => again($repo, $who),
		done => sub {
			my ($r, $status) = @_;

			committed($repo, $branch, \%files, $status == 200 ? $r
				: head($repo, $branch));
		} };
}

# Reads the result of a commit whose response was lost.

sub head {
	my ($repo, $branch) = @_;

	my $r = $t->get(api($repo) . "/revision/$branch",
		$auth{$repo->{owner}});

	$r->{body} = $json->encode({ commitOid => $r->json()->{sha} });

	return $r;
}

sub act_branch {
	my ($rng, $busy) = @_;

	my $repo = repo($rng, $busy) or return undef;
	my $from = $rng->pick(sort keys %{ $repo->{branches} },
		sort keys %{ $repo->{commits} });
	my $base = $repo->{branches}{$from} // { oid => $from,
		files => $repo->{commits}{$from} };
	my $name = $rng->pick(qw/ dev next side old /);
	my $there = $repo->{branches}{$name};
	my $who = by($rng, $repo);

	return { who => $who, method => 'POST', uri => api($repo)
		. "/branch/$name", body => $json->encode({
			startingPoint => $from }),
		expected => expected($repo, $who, $there ? 409 : 200),
		again => $there ? [] : [ 409 ],
		done => sub {
			$repo->{branches}{$name} = { %$base } unless $there;
		} };
}

sub act_unbranch {
	my ($rng, $busy) = @_;

	my $repo = repo($rng, $busy) or return undef;
	my $who = by($rng, $repo);
	my ($name) = grep { $_ ne 'main' } sort keys %{ $repo->{branches} };

	return undef unless defined $name;

	return { who => $who, method => 'DELETE', uri => api($repo)
		. "/branch/$name", expected => expected($repo, $who, 200),
		again => again($repo, $who),
		done => sub { delete $repo->{branches}{$name} } };
}

# No branch or tag may have the name of a commit; with fewer digits it may.

sub act_tag {
	my ($rng, $busy) = @_;

	my $repo = repo($rng, $busy) or return undef;
	my ($oid) = sort keys %{ $repo->{commits} };
	my $who = $repo->{owner};

	return undef unless defined $oid;

	my $name = $rng->pick($oid, "$oid/d", uc($oid));

	return { who => $who, method => 'POST', uri => api($repo)
		. '/branch/' . ($name =~ s!/!%2F!r), body => '{}',
		expected => [ 400 ] };
}

sub act_settings {
	my ($rng, $busy) = @_;

	my $repo = repo($rng, $busy) or return undef;
	my $who = by($rng, $repo);
	my $private = $rng->chance(50);

	return { who => $who, method => 'PUT', uri => api($repo) . '/settings',
		body => $json->encode({ private => $private ? \1 : \0 }),
		expected => expected($repo, $who, 200),
		done => sub {
			$repo->{epoch}++ if $private && !$repo->{private};
			$repo->{private} = $private;
		} };
}

sub act_move {
	my ($rng, $busy) = @_;

	my $repo = repo($rng, $busy) or return undef;
	my $who = by($rng, $repo);
	my $name = 'm' . ++$serial;

	return { who => $who, method => 'POST', uri => '/api/repos/move',
		body => $json->encode({ fromRepo => "$repo->{owner}/"
			. $repo->{name}, toRepo => "$repo->{owner}/$name",
			type => substr($repo->{kind}, 0, -1) }),
		expected => expected($repo, $who, 200),
		done => sub {
			delete $repos{key($repo)};
			$repo->{name} = $name;
			$repos{key($repo)} = $repo;
		} };
}

sub key { return "$_[0]{kind}/$_[0]{owner}/$_[0]{name}" }

sub act_delete {
	my ($rng, $busy) = @_;

	my $repo = repo($rng, $busy) or return undef;
	my $who = by($rng, $repo);

	return { who => $who, method => 'DELETE', uri => '/api/repos/delete',
		body => $json->encode({ organization => $repo->{owner},
			name => $repo->{name},
			type => substr($repo->{kind}, 0, -1) }),
		expected => expected($repo, $who, 200), again => again($repo, $who),
		done => sub {
			delete $repos{key($repo)};
			$repo->{gone} = 1;
		} };
}

sub act_token {
	my ($rng, $busy) = @_;

	my $repo = repo($rng, $busy) or return undef;
	my $who = $rng->pick($repo->{owner}, @callers);
	my $scope = $rng->pick(qw/ read write /);
	my $good = $scope eq 'read' ? !$repo->{private}
		|| $who eq $repo->{owner} : $who eq $repo->{owner};

	return { who => $who, method => 'GET', uri => api($repo)
		. "/xet-$scope-token/main",
		expected => $good ? [ 200 ] : $scope eq 'write' ? expected(
			$repo, $who) : [ 404, $who eq 'nobody' ? 401 : () ],
		done => sub {
			push @given, { scope => $scope, repo => $repo,
				epoch => $repo->{epoch}, headers => {
				Authorization => 'Bearer '
				. $_[0]->json()->{accessToken} } };
			shift @given if @given > 40;
		} };
}

sub good { return !$_[0]{repo}{gone} && $_[0]{epoch} == $_[0]{repo}{epoch} }

# Uploads with an earlier token.  The data belongs to the token's repo; without
# access to the repo, the upload fails.

sub act_upload {
	my ($rng, $busy) = @_;

	my @writing = grep { $_->{scope} eq 'write'
		&& !$busy->{key($_->{repo})} } @given or return undef;
	my $one = $rng->pick(@writing);

	$busy->{key($one->{repo})} = 1;

	return { who => 'a token', method => 'PUT', uri => '/cas/v1/files',
		headers => $one->{headers}, body => mix($step, 5000),
		expected => good($one) ? [ 200 ] : [ 401, 403, 404 ] };
}

# --------------------------------------------------------------------------
# checks

sub get {
	my ($uri, $headers, $method) = @_;

	my $r;

	for (1 .. 40) {
		$r = eval { $t->http($method // 'GET', $uri, $headers, undef,
			timeout => 60) };
		last if $r && ($r->{status} // 0) && $r->{status} < 500;
		sleep(0.25);
	}

	violation('answers', "$uri: " . ($r->{status} // 'none'))
		if !$r || !$r->{status} || $r->{status} >= 500;

	return $r;
}

sub sees { return !$_[0]{private} || $_[1] eq $_[0]{owner} }

sub web {
	my ($repo, $rev, $path) = @_;

	utf8::encode($path);
	$path =~ s!([^\w/.-])!sprintf('%%%02X', ord($1))!ge;

	return ($repo->{kind} eq 'datasets' ? '/datasets' : '')
		. "/$repo->{owner}/$repo->{name}/resolve/$rev/$path";
}

sub check {
	my ($rng) = @_;

	my $name = $rng->weighted({ path => 8, pinned => 6, list => 2,
		hidden => 3, given => 6, hash => 4, far => 1 });

	__PACKAGE__->can("check_$name")->($rng, $rng->pick(@callers));
}

sub any { return %repos ? $repos{$_[0]->pick(sort keys %repos)} : undef }

sub bytes_of {
	my ($repo, $who, $rev, $path, $data) = @_;

	my $r = get(web($repo, $rev, $path), $auth{$who});
	my $name = "$who: " . web($repo, $rev, $path);

	if (!sees($repo, $who)) {
		violation('names', "$name: $r->{status}, of a hidden repo")
			if $r->{status} != 404 || $r->{body} !~ /Repository not/;

	} elsif (!defined $data) {
		violation('bytes', "$name: $r->{status}, of no file")
			if $r->{status} != 404;

	} elsif ($r->{status} != 200 || $r->{body} ne $data) {
		violation('bytes', "$name: $r->{status}, not " . length($data)
			. ' bytes: ' . substr($r->{body} // '', 0, 200));
	}

	return $r;
}

sub check_path {
	my ($rng, $who) = @_;

	my $repo = any($rng) or return;
	my $branch = $rng->pick(sort keys %{ $repo->{branches} });
	my $path = $rng->pick('a', 'b', 'd/a', 'd/e/b', 'x y', "\x{e4}");
	my $data = $repo->{branches}{$branch}{files}{$path};
	my $r = bytes_of($repo, $who, $branch, $path, $data);
	my $hash = $r->header_value('X-Xet-Hash');

	$repo->{held}{$hash} = $data
		if defined $data && $r->{status} == 200 && defined $hash;
}

sub check_pinned {
	my ($rng, $who) = @_;

	my $repo = any($rng) or return;
	my @oids = sort keys %{ $repo->{commits} } or return;
	my $oid = $rng->pick(@oids);
	my $path = $rng->pick('a', 'b', 'd/a', 'd/e/b', 'x y', "\x{e4}");

	bytes_of($repo, $who, $oid, $path, $repo->{commits}{$oid}{$path});
}

sub check_list {
	my ($rng, $who) = @_;

	for my $kind (qw/ models datasets /) {
		my @ids = sort map { $_->{id} } @{ get("/api/$kind?limit=100",
			$auth{$who})->json() };
		my @mine = sort map { "$_->{owner}/$_->{name}" } grep {
			$_->{kind} eq $kind && sees($_, $who) } values %repos;

		violation('names', "$who lists $kind: @ids, not @mine")
			if "@ids" ne "@mine";
	}
}

sub check_hidden {
	my ($rng, $who) = @_;

	my $repo = any($rng) or return;

	return if sees($repo, $who);

	my $none = { %$repo, name => 'n' . 'x' x (length($repo->{name}) - 1) };

	for my $uri ('', '/tree/main', '/refs', '/commits/main',
		'/xet-read-token/main', '/revision/main')
	{
		my @r = map { get(api($_) . $uri, $auth{$who}) } $repo, $none;

		violation('names', "$who: $uri: $r[0]{status} $r[0]{body}, not "
			. "$r[1]{status} $r[1]{body}")
			if "$r[0]{status} $r[0]{body}"
				ne "$r[1]{status} $r[1]{body}";
	}
}

sub check_given {
	my ($rng) = @_;

	return unless @given;

	my $one = $rng->pick(@given);
	my @hashes = sort keys %{ $one->{repo}{held} } or return;
	my $hash = $rng->pick(@hashes);
	my $r = get("/cas/v1/files/$hash", $one->{headers});

	if (good($one)) {
		violation('given', "$hash: $r->{status}, by a good token")
			if $r->{status} != 200
				|| $r->{body} ne $one->{repo}{held}{$hash};

	} else {
		violation('given', "$hash: $r->{status}, by an old token")
			if $r->{status} == 200;
	}
}

sub check_hash {
	my ($rng, $who) = @_;

	my $repo = any($rng) or return;
	my @hashes = sort keys %{ $repo->{held} } or return;
	my $hash = $rng->pick(@hashes);
	my $uri = $rng->pick("/api/v1/files/$hash",
		"/api/v2/reconstructions/$hash", "/cas/v1/files/$hash");
	my $r = get($uri, $auth{$who});

	violation('hashes', "$who: $uri: $r->{status}")
		if $r->{status} != ($who eq 'nobody' ? 401 : 404);
}

sub check_far {
	my ($rng, $who) = @_;

	my $r = get('/far/m/resolve/main/a', $auth{$who});

	violation('bytes', "$who: the other Hub: $r->{status}")
		if $r->{body} ne 'from afar';
}

# --------------------------------------------------------------------------

sub collect {
	return { step => $step, %{ xet_start($t, { timeout => 600, env => {
		XET_POSTGRES => $t->conninfo() } }, 'gc') } };
}

sub wait_collector {
	my $r = xet_wait($collector);

	undef $collector;

	violation('answers', "xet gc: $r->{out} $r->{err}")
		if !defined $r->{code} || $r->{code} != 0;
}

sub last_step {
	my $rng = Test::Xet::Soak::Random->new($env{SEED}, 'last');

	$step = 'last';
	wait_collector() if $collector;
	check($rng) for 1 .. 50;

	for my $repo (values %repos) {
		my $r = $t->http('DELETE', '/api/repos/delete',
			$auth{$repo->{owner}}, \$json->encode({
				organization => $repo->{owner},
				name => $repo->{name},
				type => substr($repo->{kind}, 0, -1) }));

		violation('rights', "the end: $r->{status}")
			if $r->{status} != 200;
	}

	for (1 .. 3) {
		$collector = collect();
		wait_collector();
	}

	my ($left) = $t->sql('SELECT count(*) FROM xet.xorbs');

	violation('left', "$left xorbs") if $left != 0;

	$far->stop();
	$t->stop() or violation('answers', 'nginx does not end well');

	my ($bad) = grep { /\[(?:alert|emerg)\]|ERROR: \w+San|runtime error/
		&& !/exited on signal 9|signal: 9/ } split(/\n/, $t->log());

	violation('answers', $bad) if defined $bad;
}
