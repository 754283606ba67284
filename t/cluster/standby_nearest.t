#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Two standbys, each of them nearer in turn.  Reads go to the faster standby,
# and move to the other one within the documented time.  Reads do not move if
# both are equally fast, and use the far standby while the near one is down.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Delay;
use Test::Xet::Metrics;
use Test::Xet::Process qw/ patience /;

use Time::HiRes qw/ sleep time /;

my $t = Test::Xet->new(workers => 1, log => 'info', locations => <<'EOC');
location /api/ {
            xet_api;
            xet_auth off;
            client_max_body_size 80m;
        }

        location = /metrics { xet_metrics; }
EOC

$t->run();

my @files = map { $t->upload(random_bytes($_, 40000), scheme => 'none') }
	1 .. 3;
my $pg = $t->pg();
my @standby = map { $pg->standby($t->dir() . "/sb$_") } 1, 2;

$_->start() for @standby;
$pg->followed($_) for @standby;

my @way = map { Test::Xet::Delay->new($standby[$_]->socket_dir(),
	$t->dir() . "/way$_") } 0, 1;

# the first name in the list is the far standby, so that the test can
# distinguish "first readable" from "nearest"

far(0);

$t->stop();
$t->write_conf(undef, directives => { xet_postgres_read => '"host='
	. join(',', map { $_->dir() } @way) . ' user=xet dbname=xet"' });
$t->nginx()->run();

ok(readable(1, 1), 'two standbys are used');

# --------------------------------------------------------------------------
# each of the two standbys is nearer in turn

ok(moved(1, 15), 'the second one is nearer: reads go there') or told();

for my $near (0, 1, 0) {
	far(1 - $near);

	my $start = time();

	ok(moved($near, 30), ($near + 1) . ' has become nearer: reads move')
		or told();
	cmp_ok(time() - $start, '<', patience(8), 'in the documented time');
	only($near, 'and stay there');
}

# reads do not move between two standbys that are about equally near

for my $seconds ([ 0.05, 0.04 ], [ 0.05, 0.05 ]) {
	$way[$_]->seconds($seconds->[$_]) for 0, 1;

	my @told;

	for (1 .. 12) {
		sleep(0.5);
		get();
		push @told, nearest();
	}

	is(join(' ', @told), join(' ', (0) x 12),
		"@$seconds s: reads do not move");
}

# --------------------------------------------------------------------------
# the near standby stops, and comes back

far(1);
ok(moved(0, 30), 'the first one is nearer') or told();
$standby[0]->stop('immediate');

my @status = map { get() } 1 .. 5;

is_deeply(\@status, [ (200) x 5 ], 'the near one is down: reads work');
ok(readable(0, 1), 'the loss is detected');
only(1, 'the far one answers');

$standby[0]->start();
ok(readable(1, 1), 'it is readable again');
ok(moved(0, 30), 'and is the nearest') or told();
only(0, 'and answers');

$_->stop('fast') for @standby;
$t->done();

# --------------------------------------------------------------------------

# Makes one standby far, and the other one near.

sub far {
	my ($n) = @_;

	$way[$n]->seconds(0.08);
	$way[1 - $n]->seconds(0);
}

sub get {
	my $file = $files[rand(@files)];

	return $t->get("/api/v2/reconstructions/$file->{hash}")->{status};
}

sub figures {
	my ($name) = @_;

	my $m = metrics($t);

	return map { $m->{"$name\{standby=\"$_\"}"} // 0 } 1, 2;
}

sub readable {
	my @want = @_;

	return wait_for(20, sub {
		return join(' ', figures('xet_standby_readable')) eq "@want";
	});
}

sub nearest {
	my ($first, $second) = figures('xet_standby_nearest');

	return $second ? 1 : $first ? 0 : -1;
}

# Returns how many of ten reads each standby has answered.

sub answered {
	my @before = figures('xet_standby_answers_total');

	get() for 1 .. 10;

	my @now = figures('xet_standby_answers_total');

	return map { $now[$_] - $before[$_] } 0, 1;
}

sub moved {
	my ($near, $seconds) = @_;

	return wait_for($seconds, sub { (answered())[$near] == 10 });
}

sub only {
	my ($near, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is_deeply([ answered() ], [ $near ? (0, 10) : (10, 0) ], $name);
	wait_for(5, sub { nearest() == $near });
	is(nearest(), $near, "$name: the metric");
}

sub told {
	diag(map { "$_: " . join(' ', figures($_)) . "\n" }
		qw/ xet_standby_answer_microseconds xet_standby_nearest
		xet_standby_answers_total /);
}
