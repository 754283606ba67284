#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Two nodes, each a separate nginx, with one store and one database: the same
# xorb and the same shard arrive at both nodes at the same time.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;

use List::Util qw/ sum0 /;

my $rounds = 25;
my $clients = 3;

my $t = Test::Xet->new(workers => 2, log => 'info');
$t->run();

my $other = Test::Xet->new(workers => 2, log => 'info', beside => $t);
$other->run();

$_->fds_mark() for $t, $other;

my @nodes = ($t, $other);
my $seed = 0;

is($other->conf_store(), $t->conf_store(), 'one store');
isnt($other->port(), $t->port(), 'two nodes');

# --------------------------------------------------------------------------

# Sends the same body from several clients to each node.  All clients send all
# but the last byte, then all send the last byte.  With a lock, their statements
# wait for the lock together, and continue together.

sub at_once {
	my ($uri, $bodies, $table) = @_;

	my @c;

	for my $i (1 .. $clients) {
		for my $n (0 .. $#nodes) {
			my $body = $bodies->[$n];
			my $c = $nodes[$n]->http_start('POST', $uri, {
				'Content-Length' => length($body)
			}, substr($body, 0, -1));

			push @c, [ $c, substr($body, -1) ];
		}
	}

	my $lock = $table ? $t->pg_lock($table) : undef;

	$_->[0]->send($_->[1]) for @c;

	if ($lock) {
		wait_for(10, sub { $t->pg_blocked() == @c })
			or diag('only ' . $t->pg_blocked() . ' of them wait');
		$lock->unlock();
	}

	my %answers;

	for (@c) {
		my $r = $_->[0]->response('POST', timeout => 30);

		$answers{result($r, $uri)}++;
		$_->[0]->close();
	}

	return \%answers;
}

# Returns the status and the result; in a response with frames, that of the last
# frame.
# frames.

sub result {
	my ($r, $uri) = @_;

	return "$r->{status} " . ($r->{error} // $r->{body})
		if $r->{error} || $uri !~ m!/shards$!;

	my $last = $uri =~ m!/v2/! ? ($r->frames()->[-1] // {})->{data}
		: $r->json();

	return "$r->{status} " . ($last->{result} // $r->{body});
}

# --------------------------------------------------------------------------

my (%xorbs, %shards, @files, $wrong);

for my $round (1 .. $rounds) {
	my $locked = $round % 2;
	my $data = random_bytes(++$seed, 24000);
	my $x = make_xorb($data, scheme => 'none', sizes => [ 6000 ]);

	my $answers = at_once("/api/v1/xorbs/default/$x->{hash}",
		[ ($x->{bytes}) x 2 ], $locked ? 'xet.xorbs' : undef);
	$xorbs{join(', ', map { "$answers->{$_} $_" } sort keys %$answers)}++;

	# both shards have the same two files, in opposite order

	delete $x->{bytes};

	my @cuts = map { { terms => [ map { { xorb => $x->{hash},
		start => $_->[0], end => $_->[1] } } @$_ ] } }
		[ [ 0, 4 ] ], [ [ 1, 3 ], [ 0, 1 ] ];
	my @bodies = map { make_shard({ files => $_, xorbs => [ $x ] }) }
		\@cuts, [ reverse @cuts ];

	$answers = at_once('/api/v' . ($round % 3 ? 1 : 2) . '/shards',
		[ map { $_->{bytes} } @bodies ],
		$locked ? 'xet.files' : undef);
	$shards{join(', ', map { "$answers->{$_} $_" } sort keys %$answers)}++;

	push @files, [ $bodies[0]{files}[0]{hash}, $data ],
		[ $bodies[0]{files}[1]{hash},
			substr($data, 6000, 12000) . substr($data, 0, 6000) ];
}

my $losers = 2 * $clients - 1;

is_deeply(\%xorbs, { "$losers 200 {\"was_inserted\":false},"
	. " 1 200 {\"was_inserted\":true}" => $rounds },
	"a xorb, $rounds times: inserted once")
	or diag(explain(\%xorbs));
is_deeply(\%shards, { "$losers 200 0, 1 200 1" => $rounds },
	"a shard, $rounds times: registered once")
	or diag(explain(\%shards));

my $rows = $t->rows();

is($rows->{xorbs}, $rounds, 'a row for each xorb');
is($rows->{files}, 2 * $rounds, 'and for each file');
is(scalar(() = $t->files_in_store()), $rounds, 'a file for each xorb');

for my $file (@files) {
	for my $node (@nodes) {
		my $d = $node->download($file->[0],
			size => length($file->[1]));

		$wrong .= "$file->[0]: @{ $d->{errors} }\n"
			if @{ $d->{errors} } || $d->{data} ne $file->[1];
	}
}

is($wrong, undef, 'each node serves files of both nodes');

# --------------------------------------------------------------------------
# a xorb sent to one node, its shard to the other one, and the file read at the
# first

$wrong = undef;

for my $round (1 .. 20) {
	my ($one, $two) = $round % 2 ? @nodes : reverse(@nodes);
	my $data = random_bytes(++$seed, 20000);
	my $file = $one->upload($data, send => 0);

	$one->post("/api/v1/xorbs/default/$_->{hash}", \$_->{bytes})
		for @{ $file->{xorbs} };

	my $r = $two->post('/api/v1/shards', \$file->{shard});
	my $d = $one->download($file->{hash}, size => length($data));

	$wrong .= "$r->{status} $r->{body} @{ $d->{errors} }\n"
		if $r->{body} ne '{"result":1}' || @{ $d->{errors} }
		|| $d->{data} ne $data;
}

is($wrong, undef, 'data is visible at the other node at once');

# no data is lost if a node stops

$_->check_fds() for @nodes;
$other->stop();

my $d = $t->download($files[-1][0], size => length($files[-1][1]));
is_deeply($d->{errors}, [], 'without the other node');

$t->done();
