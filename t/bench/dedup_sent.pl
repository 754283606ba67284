#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Which part of data that the server has is sent again?  The first machine
# uploads a file, or a folder of small files, to a repo of a Hub; then other
# machines, each with an empty cache, upload the same or similar data to other
# repos of the same owner.  Counts the bytes of xorbs that they send, in percent
# of the bytes of the first upload.  The repos are private, so dedup answers are
# limited to what the owner may refer to.
#
#     perl t/bench/dedup_sent.pl [MiB [files [seed]]]
#
# With XET_BENCH_CAS, the path of local_cas_server of xet-core (crate
# xet-client, feature simulation), the same uploads are also sent to that
# server, by hf_xet alone.  If XET_BENCH_PUBLIC is set, the repos are public.
#
# Needs "make build tools cli" and huggingface_hub (t/clients/setup.sh), and
# disk space for six files of this size.  Takes twenty minutes for 2 GiB.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;

use File::Temp qw/ tempdir /;
use Time::HiRes qw/ time /;

use Test::Xet;
use Test::Xet::Process qw/ build_dir free_port reap root slurp spawn spew
	wait_for /;
use Test::Xet::Real;
use Test::Xet::Token;

my $mib = shift || choose(2048, 4);
my $files = shift // choose(3000, 5);
my $seed = shift || 1;
my $cas = $ENV{XET_BENCH_CAS};
my $private = $ENV{XET_BENCH_PUBLIC} ? 0 : 1;
my $build = build_dir();

$ENV{XET_CLIENT_SECONDS} ||= 1800;

need_file("$build/venv/bin/python", 't/clients/setup.sh');
bench_start("dedup: a file of $mib MiB and a folder of $files files, from new"
	. ' machines', pin => 0);
bench_note('client', 'hf_xet ' . hf_xet({}, 'version')->{version});

my $dir = tempdir('xdedup-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $t = server();
my $port = $cas ? beside() : 0;
my (%ours, %theirs, %queries);

# rows: a name, the row whose upload is 100 %, and the function that makes a
# file or folder

my @rows = (
	[ 'the file, first upload', undef, sub { make_mix($_[0], $seed,
		$mib << 20) } ],
	[ 'the same file', 0, sub { system('ln', "$dir/0", $_[0]) } ],
	[ '100 KB in front', 0, sub { join_files($_[0], 100_000, '') } ],
	[ '5 MB behind', 0, sub { join_files($_[0], '', 5_000_000) } ],
	[ '20 edits', 0, \&edited ],
	[ 'the folder, first upload', undef, \&folder ],
	[ 'the same folder', 5, sub { system('cp', '-rl', "$dir/5", $_[0]) } ],
);

splice(@rows, 5) if !$files;

for my $n (0 .. $#rows) {
	my ($name, $of, $make) = @{ $rows[$n] };
	my $data = "$dir/$n";

	$make->($data);

	($ours{$n}, $queries{$n}) = ours($n, $data);
	$theirs{$n} = theirs($data) if $cas;

	unlink($data) if $n && -f $data;

	my $line = sprintf('%s: %d bytes, queries: %s', $name, $ours{$n},
		$queries{$n});

	$line .= ", local_cas_server $theirs{$n} bytes" if $cas;
	bench_note('row', $line);
}

my @table = [ 'upload', 'MB sent', '%', 'queries (hits)',
	$cas ? ('local_cas_server, MB', '%') : () ];

for my $n (0 .. $#rows) {
	my ($name, $of) = @{ $rows[$n] };

	push @table, [ $name, map({ part($_, $n, $of) } \%ours),
		$queries{$n}, $cas ? part(\%theirs, $n, $of) : () ];
	bench_row("bytes sent again: $name", $ours{$n} / 1e6, 'MB',
		'the first upload', $ours{$n} / $ours{$of}, undef, 'less')
		if defined $of;
}

print "\n";
bench_table(@table);
bench_end($t);

# --------------------------------------------------------------------------

sub server {
	my %log = Test::Xet::Real::log_bytes();

	my $server = Test::Xet->new(workers => 2, log => 'warn',
		timeout => 7200,
		http => Test::Xet::Token::token_directive() . " $log{http}",
		locations => bench_hub());

	$server->token_key();
	$server->run();

	return $server;
}

# Starts local_cas_server, and nginx in front of it, which counts the bytes.

sub beside {
	my ($inner, $outer) = (free_port(), free_port());
	my $temp = "$dir/proxy";

	mkdir($_) for $temp, "$dir/cas";
	spew("$temp/nginx.conf", <<"EOC");
worker_processes 1;
pid $temp/pid;
error_log $temp/error.log;
events { }
http {
    log_format bytes "\$request_method \$uri \$status \$request_length";
    access_log $temp/bytes.log bytes;
    client_body_temp_path $temp/body;
    proxy_temp_path $temp/answers;
    fastcgi_temp_path $temp/f;
    uwsgi_temp_path $temp/u;
    scgi_temp_path $temp/s;
    client_max_body_size 0;
    server {
        listen 127.0.0.1:$outer;
        location / {
            proxy_pass http://127.0.0.1:$inner;
            proxy_request_buffering off;
            proxy_http_version 1.1;
            proxy_set_header Host \$http_host;
            proxy_read_timeout 1800s;
        }
        location ~ /xorb-grants/ { return 404; }
    }
}
EOC

	$t->{others} = [ spawn([ $cas, '--port', $inner, '--data-directory',
		"$dir/cas" ], output => "$dir/cas.log"),
		spawn([ '/usr/sbin/nginx', '-c', "$temp/nginx.conf", '-g',
		'daemon off; user root;' ], output => "$temp/log") ];

	wait_for(30, sub { system("curl -sf -o /dev/null"
		. " http://127.0.0.1:$outer/health") == 0 })
		or die "local_cas_server: " . slurp("$dir/cas.log") . "\n";

	return $outer;
}

END {
	local $?;

	if ($t && $t->{others}) {
		kill('TERM', @{ $t->{others} });
		reap($_, 10) for @{ $t->{others} };
	}
}

# Uploads a file or folder with huggingface_hub.  Returns the bytes of xorbs, and
# the numbers of queries and of hits.

sub ours {
	my ($n, $data) = @_;

	my $home = tempdir(CLEANUP => 1);
	my ($sent, @before) = (uploaded($t), queries());

	local @ENV{qw/ HF_HOME HF_XET_CACHE HF_ENDPOINT HF_TOKEN
		HF_HUB_DISABLE_PROGRESS_BARS HF_HUB_DISABLE_TELEMETRY /}
		= ($home, "$home/xet", $t->url(''), 'hf_none', 1, 1);

	spew("$home/up.py", <<'EOS');
import os
import sys
from huggingface_hub import HfApi

repo, data, private = sys.argv[1:]
api = HfApi()
api.create_repo(repo, private=private == "1")

if os.path.isdir(data):
    api.upload_folder(repo_id=repo, folder_path=data)
else:
    api.upload_file(path_or_fileobj=data, path_in_repo="f.bin", repo_id=repo)
EOS

	system(client_limit(), "$build/venv/bin/python", "$home/up.py",
		"me/r$n", $data, $private) == 0
		or die "huggingface_hub has failed\n";

	my @after = queries();

	return (uploaded($t) - $sent, $after[0] - $before[0] . ' ('
		. ($after[1] - $before[1]) . ')');
}

sub queries {
	my $log = $t->read_file('bytes.log');
	my $all = () = $log =~ m!^GET \S*/chunks/!mg;
	my $hits = () = $log =~ m!^GET \S*/chunks/\S+ 200 !mg;

	return ($all, $hits);
}

sub theirs {
	my ($data) = @_;

	my $log = "$dir/proxy/bytes.log";
	my $before = -s $log || 0;
	my @names = -d $data ? sort(glob("$data/*")) : $data;

	hf_xet({}, 'upload', 'session', "http://127.0.0.1:$port", @names)
		or die "hf_xet has failed\n";

	my $sum = 0;

	for (split(/\n/, substr(slurp($log), $before))) {
		$sum += $1 if m!^POST \S*/xorbs/\S+ 200 (\d+)!;
	}

	return $sum;
}

sub part {
	my ($sent, $n, $of) = @_;

	return (sprintf('%.1f', $sent->{$n} / 1e6), defined $of
		? sprintf('%.2f', 100 * $sent->{$n} / $sent->{$of}) : '');
}

# --------------------------------------------------------------------------
# data

sub join_files {
	my ($out, $front, $behind) = @_;

	my @parts = "$dir/0";

	unshift @parts, make_mix("$dir/part", $seed + 1000, $front) if $front;
	push @parts, make_mix("$dir/part", $seed + 1001, $behind) if $behind;

	system("cat @parts > $out") == 0 or die "$out: $?\n";
}

# Replaces 1,000 bytes at each of 20 places.

sub edited {
	my ($out) = @_;

	my $size = $mib << 20;

	system('cp', "$dir/0", $out) == 0 or die "$out: $?\n";
	open(my $fh, '+<:raw', $out) or die "$out: $!\n";

	for my $i (0 .. 19) {
		seek($fh, int($size * ($i + 0.5) / 20), 0);
		print $fh random_bytes($seed + 2000 + $i, 1000);
	}

	close($fh) or die "$out: $!\n";
}

# Files of 1 to 200 KiB.

sub folder {
	my ($out) = @_;

	mkdir($out) or die "$out: $!\n";

	my $all = make_mix("$dir/all", $seed + 3000, 103_000 * $files);
	my $at = 0;

	for my $n (1 .. $files) {
		my $size = 1024 + $n * 7919 % 203_776;

		spew(sprintf('%s/f%05d.bin', $out, $n),
			file_slice($all, $at, $at + $size));
		$at += $size;
	}

	unlink($all);
}
