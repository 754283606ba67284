#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Objects that the LFS API has acknowledged, with no commit of the Hub: the
# commits are in another git server.  They stay until somebody deletes them or
# the repo, and are found by their SHA-256.  After the transfer "xet" that is a
# claim, which the first download proves.  git-lfs pushes to a bare git repo,
# with both transfers; a program in place of git-xet sends Xet data.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ run_command slurp spew /;
use Test::Xet::Table;
use Test::Xet::Token;

use Digest::SHA qw/ sha256_hex /;
use File::Temp qw/ tempdir /;
use JSON::PP ();

my $t = Test::Xet->new(Test::Xet::Table::hub('xet_auth off;'
	. ' xet_token_lifetime 12s;'), workers => 1);

$t->token_key();
$t->run();
$t->allow(qr/xet: 40[034] /);

my $json = JSON::PP->new()->canonical();
my $type = { 'Content-Type' => 'application/vnd.git-lfs+json' };
my $dir = tempdir(CLEANUP => 1);
my $seed = 0;

create($_) for qw/ m other /;

# --------------------------------------------------------------------------
# the transfer "basic"

my $basic = fresh();
my $o = batch('m', 'upload', $basic, 'basic');

ok(!$o->{actions}{verify}, 'basic: no URL to verify');
is(call('PUT', $o->{actions}{upload}{href}, $basic)->{status}, 200,
	'basic: acknowledged');

# the transfer "xet"

my $xet = fresh();

$o = batch('m', 'upload', $xet, 'xet', 'basic');

my $verify = $o->{actions}{verify}{href};

is(call('POST', $verify, '{}')->{status}, 404, 'xet: nothing has arrived');
claim('m', $xet);
is(call('POST', $verify =~ s/s=.{5}/s=00000/r, '{}')->{status}, 403,
	'xet: an altered URL');
is(call('POST', batch('m', 'download', $basic)->{actions}{download}{href},
	'{}')->{status}, 403, 'xet: the URL of a download');
is(call('POST', $verify, '{}')->{status}, 200, 'xet: acknowledged');
is(call('POST', $verify, '{}')->{status}, 200, 'xet: acknowledged again');

# what a commit would have named, and what nobody has acknowledged

my $loose = fresh();
my $found = fresh();

claim('m', $loose);
claim('m', $found);
is(commit('found', $found)->{status}, 200, 'a commit');
ok(!batch('m', 'upload', $found, 'basic')->{actions}, 'it is there already');
is($t->sql('SELECT count(*) FROM xet.repo_files WHERE kept'), 3,
	'three files are kept');

ok(batch('m', 'upload', $loose, 'basic')->{actions}{upload},
	'an unproven object is asked for');

next_day();

is(fetched('m', $basic), $basic, 'basic: the next day');

my $proven = "SELECT count(*) FROM xet.files WHERE sha256_proven AND sha256 ="
	. " '\\x" . sha256_hex($xet) . "'";

is($t->sql($proven), 0, 'xet: the SHA-256 is a claim');
is(fetched('m', $xet), $xet, 'xet: the next day');
is($t->sql($proven), 1, 'xet: the SHA-256 is proven');
is(fetched('m', $xet), $xet, 'xet: again');
is(fetched('m', $loose), 404, 'not acknowledged: let go');
is(batch('m', 'upload', $xet, 'xet')->{actions}, undef,
	'xet: there already');

# an aborted upload of the same file through the Hub changes nothing

claim('m', $xet);
claim('m', $basic);
next_day();
is(fetched('m', $xet), $xet, 'xet: after another upload');
is(fetched('m', $basic), $basic, 'basic: after another upload');

# --------------------------------------------------------------------------
# another repo

is(fetched('other', $_), 404, 'another repo does not have it')
	for $basic, $xet;
ok(batch('other', 'upload', $basic, 'basic')->{actions}{upload},
	'another repo asks for it');

# --------------------------------------------------------------------------
# false claims

my $true = fresh();
my $oid = sha256_hex($true);

claim('m', fresh(), $oid);
is(call('POST', batch('m', 'upload', $true, 'xet')->{actions}{verify}{href},
	'{}')->{status}, 200, 'a false claim');
is(fetched('m', $true), 404, 'a false claim is not served');
is(fetched('m', $true), 404, 'a false claim is not served again');
is($t->sql("SELECT count(*) FROM xet.repo_files WHERE sha256 = '\\x$oid'"), 0,
	'a false claim is replaced');

claim('m', fresh(), $oid) for 1 .. 3;
$o = batch('m', 'upload', $true, 'basic');
is(call('PUT', $o->{actions}{upload}{href}, $true)->{status}, 200,
	'the right bytes, after false claims');
next_day();
is(fetched('m', $true), $true, 'the right bytes are served');

my $late = fresh();

claim('m', $late);
claim('m', fresh(), sha256_hex($late)) for 1 .. 3;
is(fetched('m', $late), $late, 'the right claim among false ones');

# --------------------------------------------------------------------------
# a quota counts kept files; SQL and the deletion of the repo remove them

my $store = $t->sql("SELECT name FROM xet.repos r JOIN xet.repo_files rf"
	. ' ON rf.repo_id = r.id WHERE rf.kept LIMIT 1');

is($t->sql("SELECT xet.repo_forget('$store', (SELECT hash FROM xet.files"
	. " WHERE sha256 = '\\x" . sha256_hex($basic) . "'))"), 't',
	'deleted by SQL');
is(fetched('m', $basic), 404, 'deleted by SQL: gone');

my $get = batch('m', 'download', $xet)->{actions}{download}{href};

$verify = batch('m', 'upload', fresh(), 'xet')->{actions}{verify}{href};
is($t->http('DELETE', '/api/repos/delete', { 'Content-Type' =>
	'application/json' }, \'{"name":"m"}')->{status}, 200,
	'the repo is deleted');
create('m');
is(call('GET', $get)->{status}, 404, 'its URL: nothing in a new repo');
is(call('POST', $verify, '{}')->{status}, 404, 'its URL: nothing to verify');
is(fetched('m', $xet), 404, 'a new repo of this name is empty');

# --------------------------------------------------------------------------
# git-lfs, against a bare git repo

SKIP: {
	skip 'no git-lfs', 1 if system('git lfs version >/dev/null 2>&1');

	create('git');

	my $agent = agent();

	for my $transfer (qw/ basic xet /) {
		my %at = map { $_ => "$dir/$transfer.$_" } qw/ bare a b home /;
		my $data = fresh();

		mkdir($at{home});
		config($at{home}, $transfer, $agent);
		git(\%at, $dir, 'init', '-q', '--bare', $at{bare});
		git(\%at, $dir, 'clone', '-q', $at{bare}, $at{a});
		git(\%at, $at{a}, 'lfs', 'track', '*.bin');
		spew("$at{a}/w.bin", $data);
		git(\%at, $at{a}, 'add', '.');
		git(\%at, $at{a}, 'commit', '-q', '-m', 'one');
		git(\%at, $at{a}, 'push', '-q', 'origin', 'HEAD:main');
		next_day();

		# the push of another clone finds the object

		git(\%at, $at{a}, 'lfs', 'push', '--all', 'origin');
		next_day();
		git(\%at, $dir, 'clone', '-q', '-b', 'main', $at{bare},
			$at{b});
		ok(slurp("$at{b}/w.bin") eq $data,
			"git-lfs, $transfer: the same bytes elsewhere");
	}

	# the program reports a complete upload, but has sent nothing; or it
	# needs so long that the URL to verify expires, and git-lfs asks again

	for (1, 0) {
		my ($name, $fails) = ($_ ? 'nothing' : 'slow', $_);
		my %at = map { $_ => "$dir/$name.$_" } qw/ bare a home /;

		mkdir($at{home});
		config($at{home}, 'xet', $fails ? "$agent nothing"
			: "$agent $dir/slept");
		git(\%at, $dir, 'init', '-q', '--bare', $at{bare});
		git(\%at, $dir, 'clone', '-q', $at{bare}, $at{a});
		git(\%at, $at{a}, 'lfs', 'track', '*.bin');
		spew("$at{a}/w.bin", fresh());
		git(\%at, $at{a}, 'add', '.');
		git(\%at, $at{a}, 'commit', '-q', '-m', 'one');
		is((git_run(\%at, $at{a}, 'push', '-q', 'origin',
			'HEAD:main'))[0] ? 1 : 0, $fails,
			"git-lfs, xet: the push of $name");
	}
}

$t->done();

# --------------------------------------------------------------------------

sub fresh { return random_bytes(++$seed, 40_000 + $seed) }

sub create {
	my ($name) = @_;

	is($t->post('/api/repos/create', \qq({"name":"$name"}))->{status}, 200,
		"a repo: $name");
}

# Returns the object of a batch.

sub batch {
	my ($repo, $operation, $data, @transfers) = @_;

	my $body = $json->encode({ operation => $operation,
		transfers => @transfers ? \@transfers : [ 'basic' ],
		objects => [ { oid => sha256_hex($data),
			size => length($data) } ] });

	return $t->post("/me/$repo.git/info/lfs/objects/batch", \$body, $type)
		->json()->{objects}[0];
}

sub call {
	my ($method, $url, $body) = @_;

	return $t->http($method, $url =~ s!^http://[^/]+!!r, {},
		defined $body ? \$body : ());
}

# Returns the bytes of an object, or the status of a failure.

sub fetched {
	my ($repo, $data) = @_;

	my $object = batch($repo, 'download', $data);

	return $object->{error}{code} if $object->{error};

	my $r = call('GET', $object->{actions}{download}{href});

	return $r->{status} == 200 ? $r->{body} : $r->{status};
}

# Uploads a file with a claim, by default the right one, as git-xet does.

sub claim {
	my ($repo, $data, $sha256) = @_;

	my $cas = { Authorization => 'Bearer ' . $t->get(
		"/api/models/me/$repo/xet-write-token/main")->json()
		->{accessToken} };
	my $xorb = make_xorb($data);
	my $shard = make_shard({ files => [ { sha256 => $sha256
		// sha256_hex($data), verification => JSON::PP::true,
		terms => [ { xorb => $xorb->{hash}, start => 0,
			end => scalar @{ $xorb->{chunks} } } ] } ],
		xorbs => [ $xorb ] });

	for ([ "/cas/v1/xorbs/default/$xorb->{hash}", $xorb->{bytes} ],
		[ '/cas/v1/shards', $shard->{bytes} ])
	{
		my $r = $t->post($_->[0], \$_->[1], $cas);

		die $r->summary() if $r->{status} != 200;
	}
}

sub commit {
	my ($path, $data) = @_;

	my $body = join('', map { $json->encode($_) . "\n" }
		{ key => 'header', value => { summary => 's' } },
		{ key => 'lfsFile', value => { path => $path, algo => 'sha256',
			oid => sha256_hex($data), size => length($data) } });

	return $t->post('/api/models/me/m/commit/main', \$body,
		{ 'Content-Type' => 'application/x-ndjson' });
}

sub next_day {
	$t->sql("UPDATE xet.hub_loose SET since = since - interval '2 days'");
	$t->sql("SELECT xet.hub_sweep('1 day', 1000)");
}

# Writes a program for git-lfs that uploads as git-xet does.

sub agent {
	my $file = "$dir/agent.pl";
	my $inc = join(' ', map { "-I$_" } grep { !ref } @INC);

	spew($file, <<'EOF');
use strict;
use warnings;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP;
use Test::Xet;

$| = 1;

while (my $line = <STDIN>) {
	my $m = decode_json($line);

	if ($m->{event} eq 'init') {
		print "{}\n";
		next;
	}

	last if $m->{event} ne 'upload';

	send_file($m) if !@ARGV || $ARGV[0] ne 'nothing';

	if (@ARGV && $ARGV[0] ne 'nothing') {
		sleep(14) if !-e $ARGV[0];
		open(my $file, '>', $ARGV[0]) or die;
	}

	print encode_json({ event => 'complete', oid => $m->{oid} }), "\n";
}

sub send_file {
	my ($m) = @_;

	my $h = $m->{action}{header};
	open(my $in, '<:raw', $m->{path}) or die;
	my $data = do { local $/; <$in> };
	my $xorb = make_xorb($data);
	my $shard = make_shard({ files => [ { sha256 => $m->{oid},
		verification => JSON::PP::true, terms => [ {
			xorb => $xorb->{hash}, start => 0,
			end => scalar @{ $xorb->{chunks} } } ] } ],
		xorbs => [ $xorb ] });

	for ([ "v1/xorbs/default/$xorb->{hash}", $xorb->{bytes} ],
		[ 'v1/shards', $shard->{bytes} ])
	{
		open(my $curl, '|-', 'curl', '-sSf', '-o', '/dev/null',
			'--data-binary', '@-', '-H', 'Authorization: Bearer '
			. $h->{'X-Xet-Access-Token'},
			"$h->{'X-Xet-Cas-Url'}/$_->[0]") or die;
		binmode($curl);
		print $curl $_->[1];
		close($curl) or die "curl: $?";
	}
}
EOF

	return "$inc $file";
}

sub config {
	my ($home, $transfer, $agent) = @_;

	my $lfs = $t->url('/me/git.git/info/lfs');

	for ([ 'user.name', 'me' ], [ 'user.email', 'me@localhost' ],
		[ 'init.defaultBranch', 'main' ], [ 'safe.directory', '*' ],
		[ 'lfs.url', $lfs ], [ "lfs.$lfs.locksverify", 'false' ],
		[ 'filter.lfs.clean', 'git-lfs clean -- %f' ],
		[ 'filter.lfs.smudge', 'git-lfs smudge -- %f' ],
		[ 'filter.lfs.process', 'git-lfs filter-process' ],
		[ 'filter.lfs.required', 'true' ],
		$transfer eq 'xet'
			? ([ 'lfs.customtransfer.xet.path', 'perl' ],
			[ 'lfs.customtransfer.xet.args', $agent ],
			[ 'lfs.customtransfer.xet.direction', 'upload' ],
			[ 'lfs.customtransfer.xet.concurrent', 'false' ]) : ())
	{
		system('git', 'config', '--file', "$home/.gitconfig", @$_) == 0
			or die;
	}
}

sub git_run {
	my ($at, $where, @args) = @_;

	local %ENV = (%ENV, HOME => $at->{home}, GIT_TERMINAL_PROMPT => 0,
		GIT_CONFIG_NOSYSTEM => 1);

	return run_command([ 'git', '-C', $where, @args ]);
}

sub git {
	my ($at, $where, @args) = @_;

	my ($status, $out) = git_run($at, $where, @args);

	is($status, 0, 'git ' . join(' ', map { s!.*/!!r } @args))
		or diag($out);
}
