#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The audit log under load: each response that a client has received has a line,
# despite rotation by USR1 and reloads.  If a worker is killed, lines may be
# missing only for the requests that it was processing.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ root slurp spew /;

use JSON::PP;
use Time::HiRes qw/ sleep /;

my $clients = 4;
my $shipped = slurp(root() . '/conf/xet_audit.conf');

$shipped =~ s!/var/log/nginx/xet_audit.log!%%DIR%%/audit.log!
	or die "conf/xet_audit.conf has no log\n";

my $t = Test::Xet->new(workers => 2, log => 'info', http => $shipped
	. "\nadd_header X-Request-Id \$request_id always;");

$t->run();

my $rotated = 0;

# Rotates the log as logrotate does: renames the file, and tells nginx to open a
# new one.

sub rotate {
	$rotated++;
	rename($t->dir() . '/audit.log', $t->dir() . "/audit.log.$rotated");
	$t->nginx()->reopen();
	wait_for(10, sub { -e $t->dir() . '/audit.log' });
}

# Starts clients that write one file after the other on persistent connections
# until they are stopped; each records the ids of its successful requests.

sub load {
	my ($name, $during) = @_;

	my $stop = $t->dir() . "/stop.$name";
	my @pids;

	for my $i (1 .. $clients) {
		my $pid = fork() // die "fork: $!\n";

		if ($pid) {
			push @pids, $pid;
			next;
		}

		my (@ids, $c);

		for (my $n = 0; !-e $stop; $n++) {
			$c ||= eval { $t->connect() } or next;

			my $r = eval { $c->exchange('PUT', '/api/v1/files',
				{}, "$name $i $n") };

			if ($r && ($r->{status} // 0) == 200 && !$r->{error}) {
				push @ids, $r->header_value('X-Request-Id');

			} else {
				undef $c;
			}

			undef $c if $c && ($r->header_value('Connection')
				// '') =~ /close/;
		}

		spew($t->dir() . "/ids.$name.$i", join("\n", @ids));
		CORE::kill('KILL', $$);
	}

	$during->();
	spew($stop, '');
	waitpid($_, 0) for @pids;

	return map { split(/\n/, slurp($t->dir() . "/ids.$name.$_")) }
		1 .. $clients;
}

# Returns the number of lines per request, in all files.  Checks that all lines
# parse.

sub told {
	my (%n, $bad);

	for my $file (glob($t->dir() . '/audit.log*')) {
		for my $line (split(/\n/, slurp($file))) {
			my $is = eval { JSON::PP->new->utf8->decode($line) };

			$bad++ if !$is;
			$n{$is->{request}}++ if $is && $is->{status} == 200
				&& $is->{action} eq 'file.put';
		}
	}

	ok(!$bad, 'every line is JSON');

	return \%n;
}

sub lost {
	my @ids = @_;

	my ($n, @lost);

	# nginx writes a line after the response has been sent

	wait_for(10, sub {
		my $all = join('', map { slurp($_) }
			glob($t->dir() . '/audit.log*'));
		@lost = grep { index($all, $_) < 0 } @ids;
		return !@lost;
	}) if @ids;

	$n = told();
	is(scalar(grep { ($n->{$_} // 0) > 1 } @ids), 0, 'no line is repeated');

	return scalar @lost;
}

my @ids = load('rotated', sub {
	for (1 .. 10) {
		sleep(0.2);
		rotate();
	}
});

cmp_ok(scalar @ids, '>', 100, 'rotation: there was load: ' . @ids);
is($rotated, 10, 'rotation: ten times');
is(lost(@ids), 0, 'rotation: nothing is lost');
is(scalar(keys %{ told() }), scalar(@ids), 'rotation: no other lines');

my @logs = grep { -s } glob($t->dir() . '/audit.log.*');

cmp_ok(scalar @logs, '>', 5, 'rotation: the files have lines each');

@ids = load('reloaded', sub {
	for (1 .. 3) {
		sleep(0.3);
		$t->reload();
		rotate();
	}
});

cmp_ok(scalar @ids, '>', 20, 'reload: there was load: ' . @ids);
is(lost(@ids), 0, 'reload: nothing is lost');

@ids = load('killed', sub {
	for (1 .. 2) {
		sleep(0.5);
		$t->kill_worker();
	}
	sleep(0.3);
});

cmp_ok(scalar @ids, '>', 20, 'kill: there was load: ' . @ids);
cmp_ok(lost(@ids), '<=', 2 * $clients,
	'kill: but for the answers of that moment nothing is lost');

$t->done();
