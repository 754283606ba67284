package Test::Xet::Soak::Collect;

# Copyright (C) the ngx_http_xet_module authors

# Runs collectors without a grace period and the scrub in the background of a
# run, and checks the audit log and the metrics.  At the end, checks that no
# unneeded data is left.  Methods of Test::Xet::Soak.

use warnings;
use strict;

use File::Find ();
use JSON::PP ();
use Time::HiRes qw/ time /;

use Test::Xet::Bytes;
use Test::Xet::Cli ();
use Test::Xet::Metrics qw/ parse_metrics /;
use Test::Xet::Process qw/ reap slurp spawn wait_for /;

# --------------------------------------------------------------------------
# configuration

# Returns directives for both nodes.  A third of all seeds has a collector that
# runs all the time, in one node or in both; another third has a scrub.  With
# every seed the last node collects on request.

sub draw_jobs {
	my ($self) = @_;

	my $rng = Test::Xet::Soak::Random->new($self->{seed}, 'chores');
	my ($gc, $scrub) = ($rng->int(9), $rng->int(6));
	my $rate = $rng->pick(qw/ 64k 1m 64m /);
	my %without = %{ $self->{without} };
	my @jobs = ({}, {});

	for (0, 1) {
		$jobs[$_]{xet_gc} = 'on grace=0s interval=1s'
			if !$without{xet_gc} && ($gc == $_ || $gc == 2);
		$jobs[$_]{xet_scrub} = "on rate=$rate interval=1s"
			if !$without{xet_scrub} && $scrub == $_;
	}

	$self->{whole} = $self->{mode} eq 'repo' && $rng->chance(50)
		&& !$without{whole};
	$self->{collects} = grep { $_->{xet_gc} } @jobs;
	$self->{chores} = join(', ', map { my $n = $_;
		map { "$_ $jobs[$n]{$_} in node $n" }
			sort keys %{ $jobs[$n] } } 0, 1);
	$self->{chores} .= ' with a location without repos' if $self->{whole};

	$jobs[1]{xet_gc} //= 'on grace=0s interval=366d rate=100000';

	return @jobs;
}

# Returns the shipped configuration for audit logs and metrics, with all logs
# on.

sub audit {
	my $conf = slurp(Test::Xet::Process::root() . '/conf/xet_audit.conf');

	$conf =~ s!/var/log/nginx/!%%DIR%%/! or die "no audit log\n";

	return ($conf, 'xet_audit all;');
}

# --------------------------------------------------------------------------
# a collector during the requests

sub op_gc {
	my ($self, $rng, $world) = @_;

	my $kill = $rng->chance(30) ? (5 + $rng->int(120)) / 1000 : undef;
	my @phases = map { [] } 1 .. $rng->int(3);

	# temporary files of an earlier crash

	$self->age(60) if $rng->chance(30);

	return (@phases, [ {
		gc => 1, late => $rng->chance(50), kill => $kill,
		text => 'xet gc' . ($kill ? ", killed after $kill s" : '')
	} ]);
}

sub start_collector {
	my ($self, $one) = @_;

	$self->{model}->collected();

	$one->{out} = $self->{t}->dir() . '/gc.' . ++$self->{collectors};
	$one->{pid} = spawn([ $one->{kill} ? ('/usr/bin/timeout', '-s', 'KILL',
		$one->{kill}) : (), Test::Xet::Cli::binary(), 'gc', '--json' ],
		output => $one->{out}, env => {
			XET_POSTGRES => $self->{t}->conninfo() });
}

sub end_collector {
	my ($self, $one, $fault) = @_;

	my $status = reap($one->{pid}, 120);
	my $out = slurp($one->{out}, 1) // '';

	unlink($one->{out});

	$self->violation('gc', "$one->{text} does not end: $out")
		unless defined $status;

	$self->wait_collection();

	$self->{model}->collected();
	$self->{answers}{$one->{kill} && $status ? 'gc killed'
		: "gc $status"}++;
	$self->note("      $one->{text}: $status $out");

	$self->violation('gc', "$one->{text}: $status $out")
		if $status && !$one->{kill} && !$fault && !$self->{swapped};
}

# Waits for a collection, which continues even if the client that requested it
# disconnects.  If another folder replaces the store, the collection pauses
# until the right folder is back.

sub wait_collection {
	my ($self) = @_;

	$self->{collection_waits} = $self->{swapped} && !$self->{collects};

	return if $self->{collects} || $self->{swapped};

	wait_for(120, sub { (eval { $self->{t}->sql('SELECT count(*) FROM'
		. " xet.jobs WHERE name = 'gc' AND (cursor IS NOT NULL OR"
		. ' started_at IS NULL)') } // 1) eq '0' })
		or $self->violation('gc', 'a collection stays');
}

# Sets the age of store files that are older than this number of seconds to two
# hours, which is longer than any upload.  No request runs at this time.

sub age {
	my ($self, $seconds) = @_;

	for my $file ($self->copies()) {
		my $at = (stat($file))[9] // next;

		utime(time() - 7200, time() - 7200, $file)
			if time() - $at > $seconds;
	}
}

sub copies {
	my ($self) = @_;

	my @files;
	my $dir = $self->{t}->store() . '/xorbs/default';

	File::Find::find({ no_chdir => 1, wanted => sub {
		push @files, $_ if -f $_ } }, $dir) if -d $dir;

	return @files;
}

# Returns the id of the row of a xorb with this hash, or '' if the server has no
# such xorb.  A xorb of one chunk has the hash of the chunk, so a client can
# name a xorb whose bytes it does not have.

sub name_known {
	my ($self, $hash) = @_;

	return eval { $self->{t}->sql("SELECT id FROM xet.xorbs WHERE hash = "
		. "'\\x" . plain_hash($hash) . "'") } // '';
}

# --------------------------------------------------------------------------
# final checks of a run

# Checks that only data that files need is left, and that all of it is intact;
# then deletes all files, and checks that nothing is left.

sub last_collection {
	my ($self, $rng) = @_;

	$self->collect_all();
	$self->nothing_left_over();
	$self->verify_store();

	$self->check_file($rng, $_) for map { @{ $_->{files} } }
		values %{ $self->{worlds} };

	$self->delete_all($rng);

	$self->check_file($rng, $_) for map { @{ $_->{files} } }
		values %{ $self->{worlds} };

	$self->collect_all();
	$self->nothing_left_over();

	for my $table (qw/ files xorbs chunks file_xorbs terms repo_files
		xorb_repos xorb_subjects /)
	{
		my $n = $self->{t}->sql("SELECT count(*) FROM xet.$table");

		$self->violation('left', "$n rows of xet.$table when all files"
			. ' are deleted') if $n;
	}
}

sub collect_all {
	my ($self) = @_;

	my $notes = 'SELECT (SELECT count(*) FROM xet.gc_files)'
		. ' + (SELECT count(*) FROM xet.gc_xorbs)'
		. ' + (SELECT count(*) FROM xet.gc_copies)';

	$self->age(-1);

	my $done = wait_for(60, sub {
		my $one = { gc => 1, text => 'xet gc at the end' };

		$self->start_collector($one);
		$self->end_collector($one);

		return $self->{t}->sql($notes) eq '0';
	});

	$self->violation('left', $self->{t}->sql($notes)
		. ' notes that stay') unless $done;
}

sub nothing_left_over {
	my ($self) = @_;

	my $t = $self->{t};
	my %of = (
		'xorbs that no file needs' => 'xorbs x WHERE NOT EXISTS'
			. ' (SELECT FROM xet.file_xorbs fx'
			. ' WHERE fx.xorb_id = x.id)',
		'files that nobody has' => 'files f WHERE f.hash IS NULL'
			. ' OR NOT f.held AND NOT EXISTS (SELECT FROM'
			. ' xet.repo_files rf WHERE rf.file_id = f.id)'
	);

	for my $what (sort keys %of) {
		my $n = $t->sql("SELECT count(*) FROM xet.$of{$what}");

		$self->violation('left', "$n $what") if $n;
	}

	my %named = map { my ($hash, $copy_id) = split(/\|/);
		plain_hash($hash) . ($copy_id ? sprintf('.%08x',
			$copy_id & 0xffffffff) : '') => 1 }
		$t->sql("SELECT encode(hash, 'hex'), copy_id FROM xet.xorbs");

	for (map { s!.*/!!r } $self->copies()) {
		$self->violation('left', "a copy without a row: $_")
			unless delete $named{$_};
	}

	# the test itself has removed some copies

	my @gone = grep { !$self->{touched}{substr($_, 0, 64)} } keys %named;

	$self->violation('readable', "rows without a copy: @gone") if @gone;
}

# Verifies the store.  Data that the run has damaged may still be damaged if no
# remaining file reads it.

sub verify_store {
	my ($self) = @_;

	my $out = $self->{t}->dir() . '/verify';
	my $status = reap(spawn([ Test::Xet::Cli::binary(), 'verify', '--json',
		'--store', $self->{t}->store() ], output => $out,
		env => { XET_POSTGRES => $self->{t}->conninfo() }), 120);

	my $text = slurp($out, 1) // '';
	my @lines = grep { my ($hash) = /([0-9a-f]{64})/;
		!$hash || !$self->{touched}{$hash} } split(/\n/, $text);
	my %damage = %{ $self->{touched} || {} };

	$self->violation('verify', "xet verify --store: "
		. ($status // 'does not end') . " $text")
		if !defined $status || $status && !%damage;

	$self->violation('verify', "xet verify --store: $status $text")
		if $status && grep { /"error"|damaged|missing/
			&& /[0-9a-f]{64}/ } @lines;

	$self->{answers}{"verify $status"}++;
	$self->note("xet verify --store: $status $text");
}

# Deletes all files: files of repos with their repos, and other files by the
# list of files in the database.

sub delete_all {
	my ($self, $rng) = @_;

	my $model = $self->{model};
	my @repos = $self->{mode} eq 'repo' ? @{ $self->{subjects} } : ();
	my $whole = $self->{whole} ? 's' : undef;

	for my $subject (grep { $_ ne ($whole // '') } @repos) {
		$self->delete_one($subject, $rng->int(2), '/api/v1/repo');
		$model->see($subject, { hash => $_ }, 'no')
			for $model->seen($subject);
	}

	return if @repos && !$whole;

	for my $hash (map { plain_hash($_) } $self->{t}->sql("SELECT"
		. " encode(hash, 'hex') FROM xet.files WHERE hash IS NOT NULL"))
	{
		my $subject = $whole // $rng->pick(@{ $self->{subjects} });

		$self->delete_one($subject, $rng->int(2),
			"/api/v1/files/$hash");
		$model->see($subject, { hash => $hash }, 'no');
	}
}

sub delete_one {
	my ($self, $subject, $node, $uri) = @_;

	$self->ask({ subject => $subject, node => $node, method => 'DELETE',
		scope => 'delete', uri => $uri,
		text => "DELETE $uri by $subject at the end",
		done => sub {
			my ($r) = @_;

			$self->violation('refused', "DELETE $uri: $r->{status}"
				. " $r->{body}") unless $r->{status} == 204
				|| $r->{status} == 404 && ($uri =~ /repo$/
				|| $self->{whole} && $self->{collecting});
		} });
}

# --------------------------------------------------------------------------
# metrics and audit log

# Checks that metrics are plausible, and that counters never go back.

sub check_metrics {
	my ($self, $n) = @_;

	my $r = $self->node($n)->get('/metrics', {}, timeout => 60);

	$self->violation('metrics', "$r->{status} " . ($r->{error} // ''))
		if $r->{status} != 200 || $r->{error};

	my $now = eval { parse_metrics($r->{body}) }
		or $self->violation('metrics', $@);
	my %type = $r->{body} =~ /^# TYPE (\w+) (\w+)$/mg;
	my $last = $self->{metrics}[$n] || {};

	for my $name (sort keys %$now) {
		my ($family) = $name =~ /^(\w+)/;
		my $type = $type{$family} // $type{
			$family =~ s/_(?:bucket|sum|count)$//r} // '';

		$self->violation('metrics', "$name: of no type")
			if $type eq '';
		$self->violation('metrics', "$name: $now->{$name}")
			if $now->{$name} !~ /^\d+(?:\.\d+)?(?:e[-+]\d+)?$/;

		$self->violation('metrics', "$name of node $n was "
			. "$last->{$name}, is $now->{$name}")
			if $type ne 'gauge' && defined $last->{$name}
				&& $now->{$name} < $last->{$name};
	}

	for my $name (sort keys %$last) {
		my ($family) = $name =~ /^(\w+)/;

		$self->violation('metrics', "$name of node $n is gone")
			if ($type{$family} // '') eq 'counter'
				&& !exists $now->{$name};
	}

	$self->{metrics}[$n] = $now;
}

# Checks that lines are complete, and that each acknowledged deletion has one.

sub check_audit {
	my ($self, $node) = @_;

	my $n = 0;

	for my $line (split(/\n/, slurp($node->dir() . '/xet_audit.log', 1)
		// ''))
	{
		my $act = eval { JSON::PP->new->utf8->decode($line) }
			or $self->violation('audit', "not JSON: $line");

		$n++ if $act->{action} =~ /\.delete$/ && $act->{status} == 204;
	}

	my $want = $self->{deletions}{$node} // 0;

	$self->violation('audit', "$n deletions of $want") if $n < $want;
	$self->note("$n deletions of $want in the audit log");
}

1;
