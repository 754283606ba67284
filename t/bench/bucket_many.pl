#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Measures operations on many objects of a bucket, with 20 ms added to each
# request to the bucket: a shard's commit and a dedup request, which check that
# their xorbs exist, and "xet gc", which removes the xorbs.  An older module and
# an older command line client are measured in alternation with the current
# ones.
#
#     XET_BENCH_OLD=OLD.so XET_BENCH_OLD_CLI=OLD perl t/bench/bucket_many.pl
#
# Needs "make build tools cli".  Takes two minutes.

use warnings;
use strict;

use FindBin;
use lib $FindBin::Bin;
use Bench;
use Sink;

use File::Temp qw/ tempdir /;
use Time::HiRes qw/ time /;

use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Collector;
use Test::Xet::Process qw/ build_dir /;
use Test::Xet::S3Fault;

my $repeats = repeats(5);
my $xorbs = choose(60, 6);
my $ms = choose(20, 2);
my %module = (now => $ENV{XET_TEST_MODULE}
	// build_dir() . '/nginx/ngx_http_xet_module.so');
my %cli = (now => build_dir() . '/xet');

if ($ENV{XET_BENCH_OLD}) {
	$module{before} = $ENV{XET_BENCH_OLD};
	$cli{before} = $ENV{XET_BENCH_OLD_CLI} // $cli{now};
}

bench_start("$xorbs objects of a bucket, $ms ms a request", pin => 0);

my $dir = tempdir('xbench-XXXXXX', CLEANUP => 1, TMPDIR => 1);

chmod(0755, $dir);

my @names = sort keys %module;
my $data = random_bytes(1, $xorbs * 20000);
my (%t, %s3, %fault, %m);

for (@names) {
	local $ENV{XET_TEST_MODULE} = $module{$_};

	$s3{$_} = Sink->new(dir => "$dir/$_");
	$fault{$_} = Test::Xet::S3Fault->new($s3{$_});
	$t{$_} = bench_server(pin => 0, s3 => $s3{$_},
		s3_endpoint => $fault{$_}->endpoint(),
		s3_params => 'timeout=30s connections=32');
	$t{$_}->run();
}

for my $n (bench_short() .. $repeats) {
	for my $which ($n % 2 ? @names : reverse @names) {
		my %one = measure($which);

		next if $n == 0;
		push @{ $m{$_}{$which} }, $one{$_} for keys %one;
	}
}

bench_heading("ms, $repeats repetitions");
bench_table([ 'ms', @names ], map { my $what = $_;
	[ $what, map { spread(@{ $m{$what}{$_} }) } @names ] }
	"shard of $xorbs xorbs", 'dedup answer', "xet gc of $xorbs copies",
	'- removal of them');

for my $what (sort keys %m) {
	bench_row("bucket: $what" =~ s/ \d+//r, $m{$what}{now}, 'ms', "a request",
		median(@{ $m{$what}{now} }) / $ms, undef, 'less');
}

bench_end($_) for values %t;
$_->stop() for values %s3;

# --------------------------------------------------------------------------

sub measure {
	my ($which) = @_;

	my ($t, $fault) = ($t{$which}, $fault{$which});
	my $file = $t->upload($data, sizes => [ (20000) x $xorbs ],
		xorb_chunks => 1);
	my $rule = $fault->add(do => 'wait', ms => $ms);
	my %one;

	$one{"shard of $xorbs xorbs"} = took(sub {
		$t->post('/api/v1/shards', \$file->{shard})->{status} == 200
			or die "shard\n";
	});

	$one{'dedup answer'} = took(sub {
		$t->get('/api/v1/chunks/default-merkledb/'
			. $file->{xorbs}[0]{chunks}[0]{hash})->{status} == 200
			or die "dedup\n";
	});

	$t->sql('DELETE FROM xet.files');

	$fault->zero();

	$one{"xet gc of $xorbs copies"} = took(sub { gc($which, $xorbs) });

	# The removal lasts from the first DELETE request to the last response.
	# "xet gc" spends the rest of its time listing objects.

	my @seen = sort { $a->{began} <=> $b->{began} } $fault->seen('DELETE');
	my ($last) = sort { $b <=> $a } map { $_->{began} + $_->{took} } @seen;

	$one{'- removal of them'} = 1000 * ($last - $seen[0]{began});

	$fault->clear($rule);

	return %one;
}

sub gc {
	my ($which, $n) = @_;

	local $ENV{XET_TEST_CLI} = $cli{$which};

	my $t = $t{$which};
	my $g = collect($t, grace => '0s');

	$g->{json}[-1]{copies} == $n or die $g->{err};
}

sub took {
	my ($code) = @_;

	my $begin = time();
	$code->();

	return 1000 * (time() - $begin);
}
