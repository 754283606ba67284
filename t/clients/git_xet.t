#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# git-xet, built from its sources (see t/clients/setup.sh), pushes to a plain
# git repo whose lfs.url is this server.  What the push has acknowledged is in
# another clone a day later.  Data tokens are renewed, bytes that are stored
# already are not sent again, and a person without rights sends nothing.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ build_dir run_command slurp spew /;
use Test::Xet::Real qw/ uploaded /;
use Test::Xet::Table;
use Test::Xet::Token;

use File::Path qw/ make_path /;
use File::Temp qw/ tempdir /;

my $git_xet = Test::Xet::Real::build() . '/clients/git_xet/git-xet';

plan(skip_all => 'git-xet is not built') unless -x $git_xet;
plan(skip_all => 'no git-lfs')
	if system('git lfs version > /dev/null 2>&1') != 0;

# git-xet renews a data token half a minute before it expires

my $t = Test::Xet->new(Test::Xet::Table::hub('xet_auth token;'
	. ' xet_token_lifetime 35s;'), workers => 1);

$t->token_key();
$t->run();
$t->allow(qr/xet: 40[134] /);

my $dir = tempdir(CLEANUP => 1);
my $hub = $t->url('') =~ s!^http://!!r;
my %token = map { $_ => token($_) } qw/ alice bob /;
my $seed = 0;

is($t->http('POST', '/api/repos/create', { 'Content-Type' =>
	'application/json', Authorization => "Bearer $token{alice}" },
	\'{"name":"git","private":true}')->{status}, 200, 'a repo');

# --------------------------------------------------------------------------
# a push, and a clone elsewhere a day later

my $a = clone('alice', 'a');
my %data = (small => fresh(40_000), large => fresh(60_000_000),
	empty => '');

push_files($a, %data, map { ("part$_" => fresh(20_000_000)) } 1 .. 4);
cmp_ok(logged(qr!POST /cas/\S+/shards 200!), '>', 0,
	'push: shards have arrived');
cmp_ok(logged(qr!GET \S+/xet-write-token/!), '>', 0,
	'push: a token is renewed');
is(logged(qr!PUT /api/lfs/!), 0, 'push: nothing went without Xet');
next_day();

my $b = clone('alice', 'b', 'main');

ok(slurp("$b->{work}/$_.bin") eq $data{$_}, "clone: $_") for sort keys %data;

# the same bytes with another name, from another machine: nothing is sent

my $xorbs = logged(qr!POST /cas/\S+/v1/xorbs/!);

push_files($b, again => $data{large});
is(logged(qr!POST /cas/\S+/v1/xorbs/!), $xorbs,
	'the same bytes: no xorb is sent');

# a changed file: the rest is not sent again

my $bytes = uploaded($t);

substr($data{large}, 30_000_000, 10) = 'a new text';
push_files($b, large => $data{large});
cmp_ok(uploaded($t) - $bytes, '<', 20_000_000,
	'a change: the rest is not sent');
next_day();

my $c = clone('alice', 'c', 'main');

ok(slurp("$c->{work}/large.bin") eq $data{large}, 'a change: the bytes');
ok(slurp("$c->{work}/small.bin") eq $data{small}, 'a change: other bytes');

# --------------------------------------------------------------------------
# another person

my $d = clone('bob', 'd');

spew("$d->{work}/$_->[0]", $_->[1]) for [ 'x.bin', fresh(50_000) ];
git($d, $d->{work}, 'lfs', 'track', '*.bin');
git($d, $d->{work}, 'add', '.');
git($d, $d->{work}, 'commit', '-q', '-m', 'x');

$xorbs = logged(qr!POST /cas/\S+/v1/xorbs/!);
isnt((git_run($d, $d->{work}, 'push', '-q', 'origin', 'HEAD:other'))[0], 0,
	'bob: the push fails');
is(logged(qr!POST /cas/\S+/v1/xorbs/!), $xorbs, 'bob: no xorb is sent');

$t->done();

# --------------------------------------------------------------------------

sub token {
	my ($who) = @_;

	my ($status, $out) = run_command([ build_dir() . '/xet', 'token',
		'--key', $t->dir() . '/token.key', '--subject', $who,
		'--scope', 'write' ]);

	die "xet token: $out\n" if $status != 0;

	return $out =~ s/\s+\z//r;
}

sub fresh { return random_bytes(++$seed, $_[0]) }

# Returns a clone with its own home.  The remote is a folder, which has a name
# with http for git-xet, since git-xet reads its token from there.

sub clone {
	my ($who, $name, $branch) = @_;

	my $at = { home => "$dir/$name.home", work => "$dir/$name" };
	my $server = "http://$who:$token{$who}\@$hub";
	my $remote = "$server/elsewhere.git";
	my $lfs = "$server/alice/git.git/info/lfs";

	make_path($at->{home}, "$dir/bin");
	symlink($git_xet, "$dir/bin/git-xet");

	if (!-d "$dir/bare") {
		git($at, $dir, 'init', '-q', '--bare', "$dir/bare");
	}

	for ([ 'user.name', $who ], [ 'user.email', "$who\@localhost" ],
		[ 'init.defaultBranch', 'main' ], [ 'safe.directory', '*' ],
		[ 'lfs.url', $lfs ], [ "lfs.$lfs.locksverify", 'false' ],
		[ "url.$dir/bare.pushInsteadOf", $remote ])
	{
		git($at, $dir, 'config', '--global', @$_);
	}

	git($at, $dir, 'lfs', 'install', '--skip-repo');
	git($at, $dir, 'xet', 'install');
	git($at, $dir, 'clone', '-q', $branch ? ('-b', $branch) : (),
		"$dir/bare", $at->{work});
	git($at, $at->{work}, 'remote', 'set-url', 'origin', $remote);

	return $at;
}

sub push_files {
	my ($at, %files) = @_;

	spew("$at->{work}/$_.bin", $files{$_}) for keys %files;
	git($at, $at->{work}, 'lfs', 'track', '*.bin');
	git($at, $at->{work}, 'add', '.');
	git($at, $at->{work}, 'commit', '-q', '-m', 'files');
	git($at, $at->{work}, 'push', '-q', 'origin', 'HEAD:main');
}

sub git_run {
	my ($at, $where, @args) = @_;

	local %ENV = (%ENV, HOME => $at->{home}, GIT_TERMINAL_PROMPT => 0,
		GIT_CONFIG_NOSYSTEM => 1, PATH => "$dir/bin:$ENV{PATH}");

	delete @ENV{qw/ HF_TOKEN HF_ENDPOINT HF_XET_CACHE HF_HOME /};

	return run_command([ 'git', '-C', $where, @args ], timeout => 300);
}

sub git {
	my ($at, $where, @args) = @_;

	my ($status, $out) = git_run($at, $where, @args);

	is($status, 0, 'git ' . join(' ', map { s!.*/!!r } @args))
		or diag($out);
}

# Returns the number of requests that match.

sub logged {
	my ($pattern) = @_;

	my $n = () = $t->read_file('bytes.log') =~ /$pattern/g;

	return $n;
}

sub next_day {
	$t->sql("UPDATE xet.hub_loose SET since = since - interval '2 days'");
	$t->sql("SELECT xet.hub_sweep('1 day', 1000)");
}
