#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures how long a commit of a Hub takes to prove the SHA-256 of files, which
# were only claimed by the client that uploaded them: for one large file,
# compared with "openssl dgst -sha256" of the same file, and for a folder of
# small files, compared with their whole upload.  huggingface_hub then commits
# the same files to another folder, with nothing to prove; the difference is the
# time of the proof.
#
#     perl t/bench/prove.pl [MiB [files]]
#
# Needs "make build tools cli", huggingface_hub (t/clients/setup.sh) and openssl,
# and disk space for nine files of that size.  Takes two minutes.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use File::Temp qw/ tempdir /;
use IPC::Open2 qw/ open2 /;
use List::Util qw/ sum /;
use Time::HiRes qw/ time /;

use Test::Xet;
use Test::Xet::Process qw/ build_dir spew /;
use Test::Xet::Real;
use Test::Xet::Token;

my $mib = shift || choose(1024, 4);
my $files = shift || choose(3000, 10);
my $repeats = repeats(3);
my $python = build_dir() . '/venv/bin/python';

$ENV{XET_CLIENT_SECONDS} ||= 600;

need_file($python, 't/clients/setup.sh');
need('openssl', 'openssl');
bench_start("proof of the SHA-256 of $mib MiB, and of $files files of 1 to"
	. ' 50 KiB', pin => 0);

my $dir = tempdir('xprove-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $t = server();

script();

my @table = [ 'seconds', 'upload', 'commit', 'commit, proven', 'proof',
	'SHA-256 alone', 'proof / SHA-256', 'proof / upload' ];

for my $case ([ 'large', "$mib MiB", \&large ],
	[ 'small', "$files files", \&small ])
{
	my ($kind, $name, $make) = @$case;
	my %m;

	for my $round (bench_short() .. $repeats) {
		my $data = "$dir/data";

		$make->($data, $round);

		my $sha = sha256($data);
		my ($upload, @commit) = upload("me/$kind-$round", $data);

		system('rm', '-rf', $data);

		next if $round == 0;

		my $proof = $commit[0] - $commit[1];

		push @{ $m{upload} }, $upload;
		push @{ $m{commit} }, $commit[0];
		push @{ $m{again} }, $commit[1];
		push @{ $m{proof} }, $proof;
		push @{ $m{sha} }, $sha;
		push @{ $m{by_sha} }, $proof / $sha;
		push @{ $m{by_upload} }, $proof / $upload;
	}

	push @table, [ $name, map { spread(@{ $m{$_} }) }
		qw/ upload commit again proof sha by_sha by_upload / ];

	bench_row('proof of a large file', $m{proof}, 's', 'SHA-256 alone',
		$m{by_sha}, 1.3, 'less') if $kind eq 'large';
	bench_row('proof of small files', $m{proof}, 's', 'their upload',
		$m{by_upload}, 0.1, 'less') if $kind eq 'small';
}

print "\n";
bench_table(@table);
bench_end($t);

# --------------------------------------------------------------------------

sub server {
	my $server = Test::Xet->new(workers => 2, log => 'warn',
		timeout => 3600, durable => 1,
		http => Test::Xet::Token::token_directive()
			. ' xet_chunk_filter zone=xet_chunks:16m;'
			. ' log_format took "$request_method $uri $status'
			. ' $request_time"; access_log %%DIR%%/took.log took;',
		locations => bench_hub());

	$server->token_key();
	$server->run();

	return $server;
}

sub script {
	spew("$dir/up.py", <<'EOS');
import os
import sys
import time
from huggingface_hub import HfApi

repo, data = sys.argv[1:]
api = HfApi()
api.create_repo(repo)

for folder in "a", "b":
    start = time.time()

    if os.path.isdir(data):
        api.upload_folder(repo_id=repo, folder_path=data, path_in_repo=folder)
    else:
        api.upload_file(path_or_fileobj=data, path_in_repo=folder + "/f.bin",
                        repo_id=repo)

    print(time.time() - start, flush=True)
    input()
EOS
}

# Returns the seconds of the first upload, and of the commits of both.  The
# client splits a large folder into several commits.

sub upload {
	my ($repo, $data) = @_;

	my $home = tempdir(CLEANUP => 1, DIR => $dir);

	local %ENV = (%ENV, HOME => $home, HF_HOME => $home,
		HF_XET_CACHE => "$home/xet", HF_ENDPOINT => $t->url(''),
		HF_TOKEN => 'hf_test', HF_HUB_DISABLE_TELEMETRY => 1,
		HF_HUB_DISABLE_PROGRESS_BARS => 1,
		HF_HUB_DISABLE_UPDATE_CHECK => 1);

	my ($took, @sums);
	my $pid = open2(my $from, my $to, client_limit(), $python, "$dir/up.py",
		$repo, $data);

	for (1, 2) {
		my $line = <$from> // die "huggingface_hub has failed\n";

		$took //= $line + 0;
		push @sums, commits($repo);
		print $to "\n";
	}

	close($to);
	waitpid($pid, 0);
	die "huggingface_hub has failed\n" if $?;
	system('rm', '-rf', $home);

	return ($took, $sums[0], $sums[1] - $sums[0]);
}

# Returns the seconds that all commits of a repo have taken.

sub commits {
	my ($repo) = @_;

	return sum($t->read_file('took.log')
		=~ m!^POST \S*/\Q$repo\E/commit/main 200 ([\d.]+)$!mg)
		// die "no commit\n";
}

# Returns the seconds that SHA-256 alone takes.

sub sha256 {
	my ($data) = @_;

	my @names = -d $data ? glob("$data/*") : $data;
	my $began = time();

	open(my $fh, '-|', 'openssl', 'dgst', '-sha256', @names)
		or die "openssl: $!\n";

	my @lines = <$fh>;

	close($fh) && @lines == @names or die "openssl has failed\n";

	return time() - $began;
}

# --------------------------------------------------------------------------
# data

sub large {
	my ($path, $round) = @_;

	make_mix($path, 100 + $round, $mib << 20);
}

sub small {
	my ($path, $round) = @_;

	mkdir($path) or die "$path: $!\n";

	for my $n (1 .. $files) {
		spew(sprintf('%s/f%05d.bin', $path, $n), random_bytes(
			1_000_000 * $round + $n, 1024 + $n * 7919 % 50_176));
	}
}
