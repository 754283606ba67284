#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Unmodified clients with a server that "make run" starts, as README.md
# describes: the clients get only HF_ENDPOINT of DIR/env.  They upload 2 GiB,
# then a second version and renamed files, for which they send only new data;
# 3,000 small files; and a folder whose upload is killed and resumed.  Then the
# test runs the table of t/clients/hub_rows.t, except for rows that need a page,
# and finally reads the whole store.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet::Process qw/
	build_dir reap run_command slurp spawn spew wait_for
/;
use Test::Xet::Real;
use Test::Xet::Shipped;
use Test::Xet::Table;

use File::Path qw/ make_path remove_tree /;
use List::Util qw/ sum0 /;
use Time::HiRes qw/ time /;

my $mib = 1048576;
my $begun = time();

my $s = Test::Xet::Shipped->new();
my $table = Test::Xet::Table->new($s);
my $dir = $table->dir();

$ENV{XET_CLIENT_SECONDS} ||= 400;

is($s->env()->{HF_ENDPOINT}, $s->url(''), 'DIR/env: HF_ENDPOINT');

# a user logs in, and does not need HF_TOKEN afterwards

my %one = (machine => 'one', token => '');

$table->hf('hf auth login', { %one, prints => qr/successful/ },
	qw/ auth login --token hf_any /);
$table->hf('hf auth whoami', { %one, prints => qr/\bme\b/ }, qw/ auth whoami /);

# the tables must run first, because they need an empty Hub

tables();
large();
small();
killed();
stored();

$s->allow(qr/ xet: (?:4\d\d|501) /);
$s->done();

# --------------------------------------------------------------------------
# 2 GiB

sub large {
	my $src = "$dir/big";
	my $down = "$dir/down";

	make_path("$src/d");
	make_mix("$src/a.bin", 1, 640 * $mib);
	make_mix("$src/d/b.bin", 2, 512 * $mib);
	random("$src/c.bin", 3, 512 * $mib);

	# repeated contents, and a part of another file

	system("for i in 1 2 3; do head -c 64M $src/c.bin;"
		. " head -c 64M $src/a.bin; done > $src/d/again.bin") == 0
		or die "again.bin: $?\n";

	spew("$src/README.md", "# Two gibibytes\n");
	spew("$src/empty", '');

	my $size = sum0(map { -s } glob("$src/* $src/d/*")) - 4096;
	my $all = 2048 * $mib;

	cmp_ok($size, '>=', $all - 4096, 'a folder of 2 GiB');

	$table->hf('hf repos create', { %one, prints => qr!me/big! },
		qw! repos create me/big !);

	my $sent = sent(sub {
		$table->hf('hf upload: 2 GiB', \%one, 'upload', 'me/big', $src,
			'.');
	});

	cmp_ok($sent, '>', 512 * $mib, 'hf upload: 2 GiB: sent');
	cmp_ok($sent, '<', 1700 * $mib,
		'hf upload: 2 GiB: and not what comes again');

	# bytes are inserted into a large file.  The client that has sent the
	# file knows all of its chunks; a client on a new machine queries one
	# chunk in a thousand.

	my %two = (machine => 'two', token => 'hf_other');

	for ([ 'second', \%one, 1 ], [ 'third', \%two, 128 ]) {
		my ($version, $who, $most) = @$_;
		my $name = "hf upload: a $version version";

		random("$dir/new", length($version) + $most, 70_000);
		rename(insert_into("$src/c.bin", (200 + $most) * $mib + 77,
			"$dir/new"), "$src/c.bin") or die "rename: $!\n";

		$sent = sent(sub {
			$table->hf($name, $who, 'upload', 'me/big', $src, '.',
				'--commit-message', $version);
		});

		cmp_ok($sent, '>', 70_000, "$name: what is new");
		cmp_ok($sent, '<', $most * $mib, "$name: and no more");
	}

	# renamed files

	rename("$src/d", "$src/e") or die "rename: $!\n";

	is(sent(sub {
		$table->hf('hf upload: a folder has another name', { %one,
			machine => 'three' }, 'upload', 'me/big', $src, '.',
			'--delete', 'd/*', '--token', 'hf_any');
	}), 0, 'hf upload: a folder has another name: nothing is sent');

	is(sent(sub {
		script('Python', { machine => 'two' }, 'rename', 'me/big',
			'a.bin', 'z.bin');
	}), 0, 'Python: a file has another name: nothing is sent');

	rename("$src/a.bin", "$src/z.bin") or die "rename: $!\n";

	# another machine

	$s->requests();
	$table->hf('hf download: 2 GiB', { machine => 'four' }, 'download',
		'me/big', '--local-dir', $down);
	same($down, $src, 'hf download: 2 GiB: byte by byte');
	cmp_ok(scalar(grep { $_->[1] =~ m!^/cas/.*/reconstructions/! }
		$s->requests()), '>=', 4, 'hf download: 2 GiB: by Xet');
	remove_tree($down);

	plain("$src/z.bin");

	my $commits = json('/api/models/me/big/commits/main');

	is_deeply([ (map { $_->{title} } @$commits)[0, 2, 3, -1] ],
		[ 'a name', 'third', 'second', 'initial commit' ],
		'the commits');

	script('Python', { machine => 'two' }, 'revision', 'me/big',
		$commits->[4]{id}, 'c.bin', 512 * $mib);
	script('Python', { machine => 'two' }, 'revision', 'me/big', 'main',
		'c.bin', 512 * $mib + 140_000);

	# deleted files

	$table->hf('hf repos delete-files', \%one,
		qw! repos delete-files me/big e/* !);
	is(join(' ', paths('me/big')), 'README.md c.bin empty z.bin',
		'hf repos delete-files: what is left');
	$table->hf('hf download: what was deleted', { machine => 'four',
		fails => 1, prints => qr/not found/i },
		qw! download me/big e/b.bin !);
	$table->hf('hf repos delete', \%one, qw! repos delete me/big -y !);
	$table->hf('hf download: of a repo that was deleted', {
		machine => 'four', fails => 1, prints => qr/not found/i },
		qw! download me/big README.md !);

	remove_tree($src, map { $table->machine($_) } qw/ one two three four /);
	took('2 GiB');
}

# Clients without Hub support.

sub plain {
	my ($file) = @_;

	my $url = $s->url('/me/big/resolve/main/z.bin');

	$table->program('curl', {}, qw/ curl -sSfL -o /, "$dir/curl", $url);
	is(run('cmp', "$dir/curl", $file), 0, 'curl: byte by byte');
	unlink("$dir/curl");

	$table->program('curl -r', {}, qw/ curl -sSfL -r 600000000-600999999
		-o /, "$dir/part", $url);
	ok(slurp("$dir/part") eq file_slice($file, 600_000_000, 601_000_000),
		'curl -r: the bytes');
}

# --------------------------------------------------------------------------
# 3,000 small files

sub small {
	my $src = "$dir/small";

	for my $i (0 .. 2999) {
		make_path("$src/" . $i % 30) if $i < 30;
		spew("$src/" . $i % 30 . "/$i.txt", "file $i\n" x ($i % 100));
	}

	$table->hf('hf upload: 3,000 files', {}, 'upload', 'me/small', $src,
		'.');
	is(scalar(paths('me/small')), 3000, 'hf upload: 3,000 files: there');
	took('3,000 files: upload');

	# another machine downloads the files into its cache, and requests them
	# again

	my %other = (machine => 'reader');

	for my $name ('hf download: 3,000 files', 'hf download: again') {
		$s->requests();

		my $out = $table->hf($name, \%other, 'download', 'me/small');
		my ($down) = $out =~ m!(/\S+/snapshots/\w+)!;

		same($down // 'nowhere', $src, "$name: byte by byte");
		is(fetched() > 0, $name !~ /again/, "$name: what is fetched");
		took($name);
	}

	script('Python', \%other, 'snapshot', 'me/small', 3000);
	is(fetched(), 0, 'Python: nothing is fetched');
	took('snapshot_download');
}

# Returns the number of requests for bytes, or for their location, since the
# last call.

sub fetched {
	return scalar(grep { $_->[0] eq 'GET' && $_->[1]
		=~ m!/resolve/|/reconstructions/|^/xorbs/! } $s->requests());
}

# --------------------------------------------------------------------------
# An upload of a folder is killed between two of its commits, and resumed.

sub killed {
	my ($files, $each) = (800, 250_000);
	my $src = "$dir/killed";
	my ($repo, $there);

	mkdir($src);
	random("$dir/random", 5, $files * $each);
	run(qw/ split -a 4 -d -b /, $each, "$dir/random", "$src/f") == 0
		or die "split: $?\n";
	unlink("$dir/random");

	# if the upload ends before it can be killed, the test tries again

	for my $try (1 .. 4) {
		$repo = "me/killed$try";

		$there = killed_upload($repo, $src);

		last if $there < $files;
	}

	cmp_ok($there, '>', 0, 'hf upload, killed: some files are there');
	cmp_ok($there, '<', $files, 'hf upload, killed: others are not');

	my $sent = sent(sub {
		$table->hf('hf upload, killed: again', {}, 'upload', $repo,
			$src, '.');
	});

	is(scalar(paths($repo)), $files, 'hf upload, killed: again: all');
	cmp_ok($sent, '<=', ($files - $there) * $each * 1.02 + $mib,
		'hf upload, killed: again: what was there is not sent');

	$table->hf('hf upload, killed: hf download', {}, 'download', $repo,
		'--local-dir', "$src-down");
	same("$src-down", $src, 'hf upload, killed: byte by byte');

	is(sent(sub {
		$table->hf('hf upload, killed: once more', {}, 'upload', $repo,
			$src, '.');
	}), 0, 'hf upload, killed: once more: nothing is sent');

	remove_tree($src, "$src-down");
	took('an upload that is killed');
}

sub killed_upload {
	my ($repo, $src) = @_;

	my $pid;

	{
		local %ENV = $table->env({});

		$pid = spawn([ $table->python() =~ s/python\z/hf/r, 'upload',
			$repo, $src, '.' ]);
	}

	wait_for(300, sub {
		my $r = $s->get("/api/models/$repo/commits/main");

		return $r->{status} == 200 && @{ $r->json() } > 1;
	}) or die "no commit of $repo\n";

	kill('KILL', $pid);
	reap($pid, 10);

	return scalar(paths($repo));
}

# --------------------------------------------------------------------------

sub tables {
	my $node = Test::Xet::Real::node_program();

	$table->script('Python', {}, $table->python(), 'hub_table.py', $_,
		$table->machine()) for qw/ repos buckets /;
	took('the table of Python');

	$table->script('Node', {}, $node, 'hub_table.mjs',
		Test::Xet::Real::build() . '/npm', $_, $s->url(''), 'hf_test',
		$table->machine()) for qw/ repos buckets /;
	took('the table of Node');
}

# Runs the check that docs/install.md recommends, with DIR/env.

sub stored {
	my ($status, $out) = run_command([ build_dir() . '/xet', 'verify',
		'--store' ], env => $s->env(), timeout => 300);

	is($status, 0, 'xet verify --store');
	like($out, qr/^\d+ xorbs, \d+ files, \d+ bytes read: 0 faults/m,
		'xet verify --store: no faults');
	note($out);
	took('xet verify --store');
}

# --------------------------------------------------------------------------

# Returns the xorb bytes that clients send during the work, including headers.
# Checks that all uploads use Xet.

sub sent {
	my ($work) = @_;

	my ($xorbs, $lfs, $put) = map { $s->received($_) }
		qw/ xorb_post hub_lfs file_put /;

	$work->();

	my $sent = $s->received('xorb_post') - $xorbs;

	note("$sent bytes of xorbs");
	is($s->received('hub_lfs') - $lfs + $s->received('file_put') - $put, 0,
		'by Xet alone');

	return $sent;
}

sub script {
	my ($name, $o, @args) = @_;

	return $table->script($name, $o, $table->python(), 'hub_shipped.py',
		@args);
}

sub json {
	my ($uri) = @_;

	my $r = $s->get($uri);

	die "$uri: $r->{status} $r->{body}\n" unless $r->{status} == 200;

	return $r->json();
}

# Returns the files of a repo, from all pages of its tree.

sub paths {
	my ($repo) = @_;

	my $next = "/api/models/$repo/tree/main?recursive=true";
	my @paths;

	while ($next) {
		my $r = $s->get($next);

		push @paths, map { $_->{path} } grep { $_->{type} eq 'file' }
			@{ $r->json() };
		($next) = ($r->header_value('Link') // '')
			=~ m!^<http://[^/]+(/[^>]*)>; rel="next"!;
	}

	@paths = sort @paths;

	return @paths;
}

sub random {
	my ($path, $seed, $size) = @_;

	system(build_dir() . "/tools/xet_make random $seed $size > $path") == 0
		or die "xet_make: $?\n";
}

sub run { return (run_command([ @_ ], timeout => 300))[0] }

sub same {
	my ($got, $want, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my ($status, $out) = run_command([ qw/ diff -r -q -x .cache /, $want,
		$got ], timeout => 300);

	is($status, 0, $name) or diag($out);
}

# Logs the time of each step.

sub took {
	note(sprintf('%.0f s: %s', time() - $begun, $_[0]));

	$begun = time();
}
