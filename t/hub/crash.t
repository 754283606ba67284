#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Crashes of a Hub while clients write to it: of workers, of nginx, of
# PostgreSQL, and of its sessions.  A client that gets no response or a server
# error retries until it succeeds.  In the end every repo and bucket has the
# contents that were acknowledged to its writer.  No commit exists twice or in
# part, and no temporary data is left.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Crowd;
use Test::Xet::Process qw/ patience slurp wait_for /;
use Test::Xet::Table;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;
use Time::HiRes qw/ sleep time /;

my $strokes = $ENV{XET_TEST_STROKES} || 20;
my $writers = 3;
my $json = JSON::PP->new()->canonical();

my $t = Test::Xet->new(Test::Xet::Table::hub());

$t->token_key();

# nginx retries bind() while threads of old workers exit

$t->allow(qr/worker process \d+ exited on signal 9/,
	qr/bind\(\) to \S+ failed .*in use/);
$t->run();

post('/api/repos/create', { name => "w$_" }) for 1 .. $writers;
post("/api/buckets/me/b$_", {}) for 1 .. $writers;

my $crowd = Test::Xet::Crowd->new(files => {
	history => $t->dir() . '/history' });

$crowd->fork_off(\&write_something, $_) for 1 .. $writers;

# --------------------------------------------------------------------------
# crashes, each after every writer has made progress since the previous crash

my %stroke = (
	'a worker' => sub { $t->kill_worker('KILL') },
	'nginx' => sub {
		$t->nginx()->kill();
		$t->run();
	},
	'the sessions of PostgreSQL' => sub { $t->pg_terminate() },
	'PostgreSQL' => sub { $t->pg_restart('immediate') },
);

my @kinds = sort keys %stroke;

srand(12);

for my $n (1 .. $strokes) {
	my $kind = $kinds[$n % @kinds];
	my %before = done();

	sleep(0.05 + rand(0.5));
	$stroke{$kind}->();

	my $go_on = wait_for(60, sub {
		my %now = done();
		return !grep { ($now{$_} || 0) < ($before{$_} || 0) + 2 }
			1 .. $writers;
	});

	ok($go_on, "stroke $n, $kind: all continue") or last;
}

$crowd->quit();

# --------------------------------------------------------------------------
# the last acknowledged contents of each path, by writer

my %told;
my %again;
my $acknowledged = 0;

for (history()) {
	my ($who, $n, $tries, $kind, $paths) = @$_;

	$acknowledged++;
	$again{$kind}++ if $tries > 1;

	for my $path (keys %$paths) {
		delete $told{$who}{$_} for grep { m!^\Q$path\E/! }
			keys %{ $told{$who} };

		if (defined $paths->{$path}) {
			$told{$who}{$path} = $paths->{$path};

		} else {
			delete $told{$who}{$path};
		}
	}
}

cmp_ok($acknowledged, '>', 10 * $strokes, "$acknowledged writes");
cmp_ok(keys %again, '>', 1, 'some of them sent again: '
	. join(', ', map { "$_ $again{$_}" } sort keys %again));

for my $who (1 .. $writers) {
	my %of = map { $_ => {} } qw/ repo bucket /;

	for my $path (keys %{ $told{$who} }) {
		my ($where, $name) = $path =~ m!^(repo|bucket)/(.*)!;

		$of{$where}{$name} = $told{$who}{$path};
	}

	is_deeply(tree("/api/models/me/w$who/tree/main?recursive=1"),
		$of{repo}, "repo $who: as acknowledged");
	is_deeply(tree("/api/buckets/me/b$who/tree?recursive=1"),
		$of{bucket}, "bucket $who: as acknowledged");

	my $read = 0;

	for my $path (sort keys %{ $of{repo} }) {
		my $body = $t->get("/me/w$who/resolve/main/$path")->{body};

		$read++ if sha256_hex($body) eq $of{repo}{$path};
	}

	is($read, keys %{ $of{repo} }, "repo $who: all bytes");

	my (%titles, @twice);

	for (commits("/api/models/me/w$who/commits/main")) {
		push @twice, $_->{title} if $titles{$_->{title}}++;
	}

	is("@twice", '', "repo $who: no commit twice");
	is(join(' ', halves($who)), '', "repo $who: no commit in halves");
}

# --------------------------------------------------------------------------
# temporary data that crashes may leave behind

is($t->sql('SELECT count(*) FROM xet.hub_lines l WHERE (l.files, l.bytes) IS'
	. ' DISTINCT FROM (SELECT (count(*), coalesce(sum(p.size), 0)::bigint)'
	. ' FROM xet.hub_paths p WHERE p.repo_id = l.repo_id'
	. ' AND p.line = l.line AND p.hash IS NOT NULL'
	. ' AND p.till = 2147483647)'), 0, 'the counts of files and bytes');
is($t->sql('SELECT count(*) FROM xet.hub_paths d WHERE d.hash IS NULL'
	. ' AND d.till = 2147483647 AND NOT EXISTS (SELECT FROM xet.hub_paths p'
	. ' WHERE p.repo_id = d.repo_id AND p.line = d.line'
	. ' AND p.folder = d.path AND p.till = 2147483647)'), 0,
	'no folder without anything');
is($t->sql('SELECT count(*) FROM xet.hub_refs f WHERE NOT EXISTS (SELECT FROM'
	. ' xet.hub_commits c WHERE c.repo_id = f.repo_id AND c.oid = f.oid)'),
	0, 'every branch leads to a commit');

$t->sql("UPDATE xet.hub_staged SET created_at = now() - interval '2 days'");
$t->sql('SELECT xet.sweep()');
is($t->sql('SELECT count(*) FROM xet.hub_staged'), 0, 'nothing is staged');

# xet verify finds no faults: stored bytes without a row, which the collector
# deletes later, are not faults

my $v = xet(undef, { env => { XET_POSTGRES => $t->conninfo() } }, 'verify',
	'--json', '--store', $t->store());
my ($sum) = map { $json->decode($_) } grep { /"xorbs":/ }
	split(/\n/, $v->{out});

ok($sum && $sum->{faults} == 0, 'the store has no faults')
	or diag($v->{out}, $v->{err});

$t->done();

# --------------------------------------------------------------------------
# a writer, in a separate process

# Repeats one write until it is acknowledged, and then records it.

sub write_something {
	my ($self) = @_;

	my $n = ++$self->{serial};
	my $who = $self->{who};
	my $model = $self->{model} ||= {};
	my @mine = sort grep { m!^repo/! } keys %$model;
	my @objects = sort grep { m!^bucket/! } keys %$model;
	my $dice = int(rand(10));
	my ($kind, $paths, $send);

	if ($dice < 3) {
		$kind = 'set';
		($paths, $send) = commit_set($who, $n);

	} elsif ($dice < 6) {
		$kind = 'lfs';
		($paths, $send) = commit_lfs($who, $n);

	} elsif ($dice < 7 && @mine) {
		$kind = 'delete';
		($paths, $send) = commit_delete($who, $n,
			$mine[int(rand(@mine))]);

	} elsif ($dice < 9 && @mine) {
		$kind = 'copy';
		($paths, $send) = copy($who, $n, $model,
			$mine[int(rand(@mine))]);

	} elsif (@objects) {
		$kind = 'remove';
		($paths, $send) = remove($who, $objects[int(rand(@objects))]);

	} else {
		return;
	}

	my $tries = until_done("$kind $n", $send);

	for (keys %$paths) {
		if (defined $paths->{$_}) {
			$model->{$_} = $paths->{$_};

		} else {
			delete $model->{$_};
		}
	}

	$self->tell('history', $json->encode([ $who, $n, $tries, $kind,
		$paths ]));
}

# Sends a request until it succeeds; returns the number of attempts.

sub until_done {
	my ($name, $send) = @_;

	my $end = time() + patience(60);

	for (my $tries = 1; time() < $end; $tries++) {
		my $r = eval { $send->() };

		return $tries if $r && ($r->{status} == 200
			|| $tries > 1 && $r->{status} == 404);

		die "$name: try $tries: " . $r->summary() . "\n"
			if $r && $r->{status} && $r->{status} < 500;

		sleep(0.02 * $tries);
	}

	die "$name: not done\n";
}

# Commits three files with the same bytes.

sub commit_set {
	my ($who, $n) = @_;

	my $data = "set $n of $who";
	my @paths = map { "set/$_" } qw/ a b c /;

	return ({ map { ("repo/$_" => sha256_hex($data)) } @paths },
		sub { commit($who, "set $n", map { { key => 'file', value => {
			path => $_, encoding => 'base64',
			content => encode_base64($data, '') } } } @paths) });
}

sub commit_lfs {
	my ($who, $n) = @_;

	my $data = Test::Xet::Crowd::body("lfs $n of $who", 60000);
	my $oid = sha256_hex($data);
	my $path = 'lfs/' . $n % 7 . "/$n";
	my $line = { key => 'lfsFile', value => { path => $path,
		algo => 'sha256', oid => $oid, size => length($data) } };

	return ({ "repo/$path" => $oid }, sub {
		my $r = post("/me/w$who.git/info/lfs/objects/batch", {
			operation => 'upload', transfers => [ 'basic' ],
			objects => [ { oid => $oid,
				size => length($data) } ] });

		return $r if $r->{status} != 200;

		my $action = $r->json()->{objects}[0]{actions}{upload};

		if ($action) {
			$r = $t->http('PUT', $action->{href}
				=~ s!^http://[^/]+!!r, {
				'Content-Length' => length($data) }, $data);
			return $r if $r->{status} != 200;
		}

		return commit($who, "lfs $n", $line);
	});
}

sub commit_delete {
	my ($who, $n, $path) = @_;

	return ({ $path => undef }, sub {
		return commit($who, "delete $n", { key => 'deletedFile',
			value => { path => $path =~ s!^repo/!!r } });
	});
}

# Copies a file of the repo to the bucket.

sub copy {
	my ($who, $n, $model, $path) = @_;

	my $to = 'of/' . $n % 5 . "/$n";
	my $sha256 = $model->{$path};

	return ({ "bucket/$to" => $sha256 }, sub {
		my $r = $t->head("/me/w$who/resolve/main/"
			. $path =~ s!^repo/!!r);

		return $r if $r->{status} != 200;

		return batch($who, { type => 'copyFile', path => $to,
			xetHash => $r->header_value('X-Xet-Hash'),
			sourceRepoType => 'model',
			sourceRepoId => "me/w$who" });
	});
}

sub remove {
	my ($who, $path) = @_;

	return ({ $path => undef }, sub {
		return batch($who, { type => 'deleteFile',
			path => $path =~ s!^bucket/!!r });
	});
}

sub commit {
	my ($who, $title, @lines) = @_;

	return lines("/api/models/me/w$who/commit/main", { key => 'header',
		value => { summary => $title } }, @lines);
}

sub batch {
	my ($who, @lines) = @_;

	return lines("/api/buckets/me/b$who/batch", @lines);
}

sub lines {
	my ($uri, @lines) = @_;

	my $body = join('', map { $json->encode($_) . "\n" } @lines);

	return $t->post($uri, \$body,
		{ 'Content-Type' => 'application/x-ndjson' });
}

sub post {
	my ($uri, $value) = @_;

	return $t->post($uri, \$json->encode($value),
		{ 'Content-Type' => 'application/json' });
}

# --------------------------------------------------------------------------

sub history {
	return map { $json->decode($_) }
		split(/\n/, slurp($crowd->{history}));
}

# Returns the last write of each writer.

sub done {
	return map { ($_->[0] => $_->[1]) } history();
}

# Returns the files of a tree by their SHA-256; bucket files are read to compute
# it.

sub tree {
	my ($uri) = @_;

	my %files;

	while ($uri) {
		my $r = $t->get($uri);

		for (grep { $_->{type} eq 'file' } @{ $r->json() }) {
			$files{$_->{path}} = $_->{lfs} ? $_->{lfs}{oid}
				: bucket_sha256($uri, $_->{path});
		}

		($uri) = ($r->header_value('Link') // '')
			=~ m!^<http://[^/]+([^>]*)>; *rel="next"!;
	}

	return \%files;
}

sub bucket_sha256 {
	my ($uri, $path) = @_;

	my ($id) = $uri =~ m!^/api/(buckets/[^/]+/[^/]+)/!;

	return sha256_hex($t->get("/$id/resolve/$path")->{body});
}

sub commits {
	my ($uri) = @_;

	my @commits;

	while ($uri) {
		my $r = $t->get($uri);

		push @commits, @{ $r->json() };
		($uri) = ($r->header_value('Link') // '')
			=~ m!^<http://[^/]+([^>]*)>; *rel="next"!;
	}

	return @commits;
}

# Returns commits whose set of files is incomplete or whose files differ.

sub halves {
	my ($who) = @_;

	my @found;

	for (commits("/api/models/me/w$who/commits/main")) {
		next unless $_->{title} =~ /^set/;

		my $files = tree("/api/models/me/w$who/tree/$_->{id}/set");
		my %oids = map { $_ => 1 } values %$files;

		push @found, $_->{title} if keys %oids != 1
			|| keys %$files != 3;
	}

	return @found;
}
