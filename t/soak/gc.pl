#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Runs the garbage collector and other actors in a random order, which depends
# only on a seed.  The actors may act between any two steps of the collector:
#
#     perl t/soak/gc.pl ROUNDS=1000000 SEED=1
#
# A round is one step of one actor: a statement, a COMMIT, a link or an unlink,
# as a node executes it.  The steps run one after the other, in sessions of a
# real PostgreSQL and on real files.
#
#     upload   links copies of xorbs and inserts their rows, or relies on an
#              earlier response; checks the copies that the rows name; registers
#              a file of these xorbs in a repo or in the store; each COMMIT is a
#              separate step
#     dedup    gets a dedup response for a xorb, and remembers the xorb
#     delete   deletes a file of the store, a file of a repo, or a repo
#     collect  xet.gc_files(), xet.gc_xorbs(), xet.gc_copies(), an unlink for
#              each copy, xet.gc_removed(); in the smallest possible batches
#     sweep    quarantines an orphan, checks again, removes or restores it; or
#              continues with the quarantine of an earlier sweep
#     damage   removes a copy that a row names, as a failing disk may do
#
# An actor that waits for a lock is skipped until it has the lock.  Any actor
# may die between any two steps, with its session.  PostgreSQL is killed and
# restarted, which ends all actors.  What must hold:
#
#     files    acknowledged files without an acknowledged deletion exist, with
#              all their rows and copies, except for copies that the run has
#              damaged
#     rows     each row of a xorb has its copy
#     end      a final collection leaves no unneeded xorb, no copy without a
#              row, and no row in gc_files, gc_xorbs and gc_copies
#
# A holder of a file is a repo or the store.  If operations on the same file and
# holder overlap, or a response is lost, the order of the operations is unknown;
# the state that is found after they have ended must persist.
#
#     SECONDS=N   ends after N seconds, with the rounds done so far
#     BREAK=stay|notes|needs  removes one of the database's safeguards; the
#                 run must detect the resulting errors

use warnings;
use strict;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Digest::SHA qw/ sha256 /;
use File::Temp qw/ tempdir /;
use IO::Select;
use Time::HiRes qw/ time /;

use Test::Xet::Postgres;

my %env = (ROUNDS => 10000, SEED => 1, ACTORS => 9, FILES => 8, BLOCKS => 9,
	BREAK => '', KILLS => 2500, SECONDS => 0,
	map { /^(\w+)=(.*)/ ? ($1 => $2) : () } @ARGV);

my @repos = qw/ a b /;
my $patience = 0.004;

srand($env{SEED});

my $dir = tempdir('xt-gc-XXXXXX', DIR => -d '/dev/shm' ? '/dev/shm' : '/tmp',
	CLEANUP => 1);
chmod(0755, $dir);
mkdir("$dir/copies") or die;
mkdir("$dir/aside") or die;

my $pg = Test::Xet::Postgres->new(dir => "$dir/pg");

my (@actors, %keys, %remembered, %damaged, %owner, %count);
my ($round, $serial, $main) = (0, 0);
my @past;

$SIG{PIPE} = 'IGNORE';

exit(main());

# --------------------------------------------------------------------------

sub main {
	$pg->start();
	break_it($env{BREAK}) if $env{BREAK};

	$main = session();

	# orphans are only found after a store has been claimed

	query("SELECT xet.store_claim('" . '11' x 16 . "')");

	my $began = time();
	my $found = eval { run(); finish(); undef } // $@;

	my $seconds = time() - $began;

	print join(', ', map { "$count{$_} $_" } sort keys %count), "\n";

	if ($found) {
		print "VIOLATION round $round, seed $env{SEED}: $found";
		return 1;
	}

	printf "%d rounds without a violation, %.0f s\n", $round, $seconds;

	return 0;
}

sub run {
	my $end = $env{SECONDS} ? time() + $env{SECONDS} : 9e15;

	while ($round < $env{ROUNDS} && time() < $end) {
		$round++;

		if ($env{KILLS} && $round % $env{KILLS} == 0) {
			kill_postgres();
			next;
		}

		while (@actors < $env{ACTORS}) {
			push @actors, actor();
		}

		my $n = int(rand(@actors));
		my $actor = $actors[$n];

		if (rand() < 0.004) {
			$count{deaths}++;
			end($actor, 'died');

		} else {
			step($actor);
		}

		splice(@actors, $n, 1) if $actor->{ended};

		look() if $round % 16 == 0;
		rows_lead_to_copies() if $round % 512 == 0;
	}
}

# Lets all actors finish, then collects garbage: no unneeded object may be left.

sub finish {
	for (1 .. 100000) {
		@actors = grep { !$_->{ended} } @actors;
		last unless @actors;

		step($_) for @actors;
	}

	die "actors that do not end\n" if @actors;

	look($_) for 0 .. $env{FILES} - 1;

	%remembered = ();
	collect_all();

	look($_) for 0 .. $env{FILES} - 1;
	rows_lead_to_copies();

	my %named = map { $_ => 1 } split(/\n/, query('SELECT encode(hash,'
		. " 'hex') || '.' || copy_id FROM xet.xorbs"));

	for (copies()) {
		die "a copy without a row: $_\n"
			unless $named{$_} || !gone_for_good($_);
	}

	my $dead = query('SELECT count(*) FROM xet.xorbs x WHERE NOT EXISTS'
		. ' (SELECT FROM xet.file_xorbs fx WHERE fx.xorb_id = x.id)');
	die "$dead xorbs that no file needs\n" if $dead;

	$dead = query('SELECT count(*) FROM xet.files f WHERE f.hash IS NULL OR'
		. ' NOT f.held AND NOT EXISTS (SELECT FROM xet.repo_files rf'
		. ' WHERE rf.file_id = f.id)');
	die "$dead files that nobody has\n" if $dead;

	for my $table (qw/ gc_files gc_xorbs gc_copies /) {
		my $n = query("SELECT count(*) FROM xet.$table");

		die "$n notes in $table\n" if $n;
	}

	$count{files} = query('SELECT count(*) FROM xet.files');
	$count{xorbs} = query('SELECT count(*) FROM xet.xorbs');
}

sub collect_all {
	for (1 .. 1000) {
		my ($f) = split(/\|/, query('SELECT seen FROM xet.gc_files(1000)'));
		my ($x) = split(/\|/, query("SELECT seen FROM xet.gc_xorbs('0',"
			. ' 1000)'));
		my @copies = split(/\n/, query("SELECT encode(hash, 'hex')"
			. " || '.' || copy_id FROM xet.gc_copies(1000)"));

		unlink("$dir/copies/$_") for @copies;
		removed($main, @copies) if @copies;

		last unless $f || $x || @copies;
	}

	my %named = map { $_ => 1 } split(/\n/, query('SELECT encode(hash,'
		. " 'hex') || '.' || copy_id FROM xet.xorbs"));

	for (aside()) {
		die "aside, and a row leads to it: $_\n"
			if $named{$_} && !-e "$dir/copies/$_";
		unlink("$dir/aside/$_");
	}

	for (copies()) {
		unlink("$dir/copies/$_") unless $named{$_};
	}
}

# A sweep may remove any copy that no upload owns.  At the end of the run all
# uploads have ended.

sub gone_for_good { return !$owner{$_[0]} }

# --------------------------------------------------------------------------
# what must hold

sub look {
	my ($f) = @_;

	observe($_) for grep { !defined $keys{$_}{value}
		&& !%{ $keys{$_}{ops} } } sort keys %keys;

	my @known = grep { ($keys{$_}{value} // 2) == 1 } sort keys %keys;

	$count{looks}++;
	$count{known} += @known;
	@known = grep { /^\Q$f\E:/ } @known if defined $f;
	return unless @known;

	my $key = $known[rand(@known)];
	my ($file, $holder) = split(/:/, $key);

	my $bad = lost($file, $holder) or return;

	# a statement that waited for a lock may have continued in the meantime

	poll($_) for grep { $_->{waits} } @actors;

	return if ($keys{$key}{value} // 2) != 1;

	$bad = lost($file, $holder) or return;
	die "file $file of $holder, acknowledged in round $keys{$key}{round}: "
		. "$bad\n" . history($file);
}

# Records the state of a file whose state was unknown and which no running
# operation can change: from then on, the file must keep this state.

sub observe {
	my ($key) = @_;

	my ($file, $holder) = split(/:/, $key);

	$keys{$key}{value} = (lost($file, $holder) // '') =~ /^it is not/ ? 0 : 1;
	$keys{$key}{round} = $round;
}

sub lost {
	my ($file, $holder) = @_;

	my $hash = hex_of("file $file");
	my $has = $holder eq 'store' ? 'f.held' : 'EXISTS (SELECT FROM'
		. ' xet.repo_files rf JOIN xet.repos r ON r.id = rf.repo_id'
		. " WHERE rf.file_id = f.id AND r.name = '$holder')";

	my $out = query("SELECT $has, encode(f.packed, 'hex'), (SELECT"
		. " string_agg(encode(x.hash, 'hex') || '.' || x.copy_id, ' ')"
		. ' FROM xet.file_xorbs fx JOIN xet.xorbs x ON x.id = fx.xorb_id'
		. ' WHERE fx.file_id = f.id) FROM xet.files f'
		. " WHERE f.hash = '\\x$hash'");

	return 'it is not there' if $out eq '';

	my ($held, $packed, $rows) = split(/\|/, $out);
	my %rows = map { $_ => 1 } split(/ /, $rows // '');

	return 'it is not his' if $held ne 't';

	while ($packed =~ /(.{104})/g) {
		my $xorb = substr($1, 0, 64);
		my $copy_id = unpack('l<', pack('H*', substr($1, 96, 8)));
		my $copy = "$xorb.$copy_id";

		return "$copy has no row, or no reference" unless $rows{$copy};
		return "$copy is not there"
			unless -e "$dir/copies/$copy" || $damaged{$xorb};
	}

	return undef;
}

# Checks that every row has its copy.  Xorbs that the run has damaged are exempt
# until their repair has ended.

sub rows_lead_to_copies {
	my $out = query("SELECT encode(hash, 'hex') || '.' || copy_id"
		. ' FROM xet.xorbs');

	for my $copy (split(/\n/, $out)) {
		next if -e "$dir/copies/$copy" || $damaged{substr($copy, 0, 64)};

		die "a row leads to $copy, which is not there\n";
	}
}

# --------------------------------------------------------------------------
# operations of the model

# Begins an operation on keys; a key is a file and its holder.  If two
# operations on a key overlap, the result is unknown.

sub begin_op {
	my ($actor, $value, @keys) = @_;

	for my $key (@keys) {
		my $k = $keys{$key} //= { value => 0, ops => {} };
		my $op = { value => $value };

		for (values %{ $k->{ops} }) {
			$_->{met} = 1;
			$op->{met} = 1;
		}

		$k->{ops}{$actor->{id}} = $op;
		push @{ $actor->{keys} }, $key;
	}
}

# Ends an operation.  $how is "done" (acknowledged), "nothing" (certainly
# without effect), or "unknown".

sub end_op {
	my ($actor, $how) = @_;

	for my $key (splice @{ $actor->{keys} }) {
		my $k = $keys{$key};
		my $op = delete $k->{ops}{$actor->{id}};

		next if $how eq 'nothing';

		if ($how eq 'done' && !$op->{met}) {
			$k->{value} = $op->{value};
			$k->{round} = $round;
			next;
		}

		delete $k->{value};

		# operations that are still running count as overlapping, too

		$_->{met} = 1 for values %{ $k->{ops} };
	}
}

sub note {
	my ($actor, $text) = @_;

	push @past, "$round $actor->{id} $text";
}

sub history {
	my ($file) = @_;

	return join('', map { "    $_\n" } grep { /file $file\b/ || /repo/ }
		@past);
}

# --------------------------------------------------------------------------
# actors

sub actor {
	my $what = rand();
	my $actor = { id => ++$serial, keys => [] };

	$actor->{do} = $what < 0.35 ? upload($actor)
		: $what < 0.40 ? dedup($actor)
		: $what < 0.60 ? remove($actor)
		: $what < 0.94 ? collect($actor)
		: $what < 0.98 ? sweep($actor) : damage($actor);

	return $actor;
}

# Executes the next step of an actor.  The actor's function returns a statement
# to send, or undef after a step without a statement; the actor is done if
# $actor->{over} is set, too.  The next call gets the response as its argument.

sub step {
	my ($actor) = @_;

	# look() calls poll(), which may have ended the actor

	return if $actor->{ended};

	return poll($actor) if $actor->{waits};

	advance($actor, undef);
}

sub advance {
	my ($actor, $answer) = @_;

	my $statement = eval { $actor->{do}->($answer) };

	if ($@) {
		die $@ unless ref $@;

		end($actor, $@->{how});
		return;
	}

	if (!defined $statement) {
		return end($actor, 'done') if $actor->{over};
		return;
	}

	$actor->{pg} //= session();
	$actor->{statement} = $statement;
	$actor->{pg}->send($statement);
	$actor->{waits} = 1;

	poll($actor);
}

sub poll {
	my ($actor) = @_;

	my $answer = eval { $actor->{pg}->wait($patience) };

	if ($@) {
		end($actor, 'died');
		return;
	}

	if (!defined $answer) {
		$count{waits}++;
		return;
	}

	$actor->{waits} = 0;

	if ($answer =~ /^(?:ERROR|FATAL):\s+(?:(\w{5}):)?/m) {
		my $state = $1 // '?';

		$count{"of $state"}++;

		die "$actor->{statement}: $answer\n"
			unless $state =~ /^(?:XT00[123]|40P01|40001|40XT1|55P03)$/;

		return end($actor, 'refused');
	}

	advance($actor, $answer);
}

# If an actor dies while its statement is in flight, PostgreSQL may have
# executed the statement, so the effect is unknown.

sub end {
	my ($actor, $how) = @_;

	return if $actor->{ended};

	$actor->{ended} = 1;
	delete $owner{$_} for grep { $owner{$_} == $actor->{id} } keys %owner;

	my $sure = $how eq 'done' ? ($actor->{acked} ? 'done' : 'nothing')
		: $how eq 'refused' ? 'nothing'
		: $actor->{acked} ? 'done'
		: $actor->{waits} ? 'unknown' : 'nothing';

	if ($actor->{pg}) {

		# PostgreSQL may still execute the statements that it received

		if ($actor->{waits} || $actor->{open} || $how ne 'done') {
			kill('KILL', $actor->{pg}{pid});
			$actor->{pg}->close();
			wait_sessions() if $actor->{waits} && $main;

		} else {
			give_back($actor->{pg});
		}
	}

	note($actor, "ends $how, $sure, @{ $actor->{keys} }");
	end_op($actor, $sure);

	# "do" refers to the actor; this cycle would keep the session's pipe
	# open

	delete @$actor{qw/ do pg /};

	splice(@past, 0, @past - 4000) if @past > 8000;
}

sub refuse { die { how => 'refused' } }

# Uploads a file of two to four blocks.  Each block is in two xorbs; the upload
# chooses one.  The steps are those of ngx_http_xet_xorb.c,
# ngx_http_xet_xorb_commit.c and ngx_http_xet_register.c.

sub upload {
	my ($actor) = @_;

	my $file = int(rand($env{FILES}));
	my $repo = rand() < 0.5 ? undef : $repos[rand(@repos)];
	my @xorbs = map { ($file * 5 + $_ * 3) % $env{BLOCKS} * 2 + int(rand(2)) }
		0 .. 1 + $file % 3;
	my (@left, @gone, $spoilt, %copy_ids, $x, $copy_id, $state);

	my $client = 'c' . int(rand(3));

	@left = grep { !$remembered{$client}{$_} } @xorbs;

	begin_op($actor, 1, "$file:" . ($repo // 'store'));
	note($actor, "upload file $file for " . ($repo // 'store'));

	$state = @left ? 'link' : 'slices';

	my $put = sub {
		my $k = hex_of("xorb $x");

		return "BEGIN; SELECT the_copy_id FROM xet.xorb_put('\\x$k',"
			. " sha256('a $x') || sha256('b $x'),"
			. " '\\xe8030000d0070000', '\\xf4010000e8030000', 2000,"
			. " 1000, '{0}', $copy_id, '\\x" . '00' x 16 . "', "
			. whose($repo) . ", NULL)";
	};

	return sub {
		my ($answer) = @_;

		if ($state eq 'link') {
			$x = shift @left;
			$copy_id = int(rand(2 ** 31)) + 1;

			my $copy = hex_of("xorb $x") . ".$copy_id";

			$owner{$copy} = $actor->{id};
			spew("$dir/copies/$copy");
			$state = 'put';
			$count{copies}++;
			return undef;
		}

		if ($state eq 'put') {
			$actor->{open} = 1;
			$state = 'put commit';
			return $put->();
		}

		if ($state eq 'put commit') {
			$copy_ids{new} = $answer;
			$state = 'put done';
			return undef;
		}

		if ($state eq 'put done') {
			$state = 'check';
			return 'COMMIT';
		}

		if ($state eq 'check') {
			my $k = hex_of("xorb $x");

			$actor->{open} = 0;

			if ($copy_ids{new} == $copy_id) {
				delete $damaged{$k};
				$state = 'sent';

			} elsif (-e "$dir/copies/$k.$copy_ids{new}") {
				$state = 'unlink';

			} else {
				$state = 'heal';
			}

			return undef;
		}

		if ($state eq 'unlink') {
			unlink("$dir/copies/" . hex_of("xorb $x") . ".$copy_id");
			$state = 'sent';
			return undef;
		}

		if ($state eq 'heal') {
			$actor->{open} = 1;
			$state = 'heal commit';

			return "BEGIN; SELECT the_copy_id FROM xet.xorb_heal('\\x"
				. hex_of("xorb $x") . "', '\\xf4010000e8030000',"
				. " 1000, $copy_id, '\\x" . '00' x 16
				. "', $copy_ids{new})";
		}

		if ($state eq 'heal commit') {
			$copy_ids{healed} = $answer;
			$state = 'heal done';
			return undef;
		}

		if ($state eq 'heal done') {
			$state = 'healed';
			return 'COMMIT';
		}

		if ($state eq 'healed') {
			$actor->{open} = 0;
			$count{heals}++;

			# the row has been deleted: insert it again, with our
			# copy

			if ($copy_ids{healed} eq '') {
				$state = 'put';
				return undef;
			}

			$copy_ids{new} = $copy_ids{healed};
			$state = 'check';
			return undef;
		}

		if ($state eq 'sent') {
			delete $owner{$_} for grep { $owner{$_} == $actor->{id} }
				keys %owner;
			$remembered{$client}{$x} = 1;
			$state = @left ? 'link' : 'slices';
			return undef;
		}

		if ($state eq 'slices') {
			$state = 'sliced';
			return "SELECT encode(hash, 'hex'), copy_id,"
				. ' damaged_at IS NULL FROM xet.xorbs WHERE hash IN ('
				. join(', ', map { "'\\x" . hex_of("xorb $_") . "'" }
				@xorbs) . ')';
		}

		if ($state eq 'sliced') {
			my %rows = map { my ($k, $t, $w) = split(/\|/);
				($k => [ $t, $w ]) } split(/\n/, $answer);

			for (@xorbs) {
				my $row = $rows{hex_of("xorb $_")};

				if (!$row || $row->[1] ne 't') {
					delete $remembered{$client}{$_} for @xorbs;
					$count{refusals}++;
					refuse();
				}

				$copy_ids{$_} = $row->[0];
			}

			$state = 'stat';
			return undef;
		}

		if ($state eq 'stat') {
			@gone = grep { !-e "$dir/copies/" . hex_of("xorb $_")
				. ".$copy_ids{$_}" } @xorbs;

			if (@gone) {
				$x = $gone[0];
				$spoilt = grep { $damaged{hex_of("xorb $_")} } @gone;
				$state = 'mark';
				return 'SELECT xet.xorb_damaged(ARRAY['
					. join(', ', map { "'\\x" . hex_of("xorb $_")
					. "'::bytea" } @gone) . '], ARRAY['
					. join(', ', @copy_ids{@gone}) . '])';
			}

			$state = 'commit';
			$actor->{open} = 1;
			return 'BEGIN; ' . shard($file, \@xorbs, \%copy_ids, $repo);
		}

		if ($state eq 'mark') {
			delete $remembered{$client}{$_} for @xorbs;

			# PostgreSQL does not count rows that have changed in
			# the meantime; another actor may repair the copies
			# before the response arrives

			die "a copy of xorb @gone is gone, and its row is not\n"
				if $answer > $spoilt;

			refuse();
		}

		if ($state eq 'commit') {
			$state = 'committed';
			return undef;
		}

		if ($state eq 'committed') {
			$actor->{acks} = 1;
			$state = 'acked';
			return 'COMMIT';
		}

		$actor->{open} = 0;
		$actor->{acked} = 1;
		$actor->{over} = 1;
		$remembered{$client}{$_} = 1 for @xorbs;
		$count{uploads}++;
		note($actor, "acknowledged file $file");

		return undef;
	};
}

sub shard {
	my ($file, $xorbs, $copy_ids, $repo) = @_;

	my $packed = join('', map { hex_of("xorb $_")
		. unpack('H*', pack('vvVVVl<', 0, 1, 0, 1000, 2000, $copy_ids->{$_}))
		} @$xorbs);
	my $size = 2000 * @$xorbs;
	my $n = @$xorbs;

	return "SELECT xet.shard_put(uuid_send(gen_random_uuid()), 0, '{0}',"
		. " ARRAY['\\x" . hex_of("file $file") . "'::bytea], '{$size}',"
		. " ARRAY[NULL]::bytea[], '{$n}', ARRAY['\\x$packed'::bytea],"
		. " '{}', '{}', '{}', '{}', '{}', '{}', '{}', " . whose($repo)
		. ', NULL, 0)';
}

sub dedup {
	my ($actor) = @_;

	my $x = int(rand(2 * $env{BLOCKS}));
	my $client = 'c' . int(rand(3));
	my $asked;

	return sub {
		my ($answer) = @_;

		if (!$asked) {
			$asked = 1;
			return "SELECT xet.xorb_advertised(ARRAY['\\x"
				. hex_of("xorb $x") . "'::bytea])";
		}

		$remembered{$client}{$x} = 1 if $answer;
		$actor->{over} = 1;

		return undef;
	};
}

sub remove {
	my ($actor) = @_;

	my $file = int(rand($env{FILES}));
	my $repo = rand() < 0.4 ? undef : $repos[rand(@repos)];
	my $hash = hex_of("file $file");
	my $state = 'begin';
	my ($statement, $result);

	if (defined $repo && rand() < 0.06) {
		begin_op($actor, 0, map { "$_:$repo" } 0 .. $env{FILES} - 1);
		note($actor, "delete of repo $repo");
		$statement = "SELECT xet.repo_delete('$repo')";

	} elsif (defined $repo) {
		begin_op($actor, 0, "$file:$repo");
		note($actor, "delete of file $file in $repo");
		$statement = "SELECT xet.repo_forget('$repo', '\\x$hash')";

	} else {
		begin_op($actor, 0, "$file:store");
		note($actor, "delete of file $file");
		$statement = "SELECT xet.file_delete('\\x$hash')";
	}

	return sub {
		my ($answer) = @_;

		if ($state eq 'begin') {
			$state = 'commit';
			$actor->{open} = 1;
			return "BEGIN; $statement";
		}

		if ($state eq 'commit') {
			$result = $answer;
			$state = 'wait';
			return undef;
		}

		if ($state eq 'wait') {
			$state = 'done';
			return 'COMMIT';
		}

		$actor->{open} = 0;
		$actor->{over} = 1;

		# 2: repos still have the file, so it was not deleted

		if ($result ne '2') {
			$actor->{acked} = 1;
			$count{deletes}++;
			note($actor, "deleted file $file");
		}

		return undef;
	};
}

sub collect {
	my ($actor) = @_;

	my $batch = 1 + int(rand(4));
	my $grace = rand() < 0.9 ? '0' : '86400';
	my $what = rand();
	my $state = $what < 0.4 ? 'files' : $what < 0.75 ? 'xorbs' : 'copies';
	my @copies;
	my @done;

	note($actor, "collect $state");

	return sub {
		my ($answer) = @_;

		if ($state eq 'files' || $state eq 'xorbs') {
			my $call = $state eq 'files' ? "SELECT files FROM"
				. " xet.gc_files($batch)" : 'SELECT xorbs FROM'
				. " xet.gc_xorbs('$grace', $batch)";

			$actor->{open} = 1;
			$state = "$state commit";
			return "BEGIN; $call";
		}

		if ($state =~ /^(\w+) commit$/) {
			$count{"$1 collected"} += $answer;
			$state = 'wait';
			return undef;
		}

		if ($state eq 'wait') {
			$state = 'end';
			return 'COMMIT';
		}

		if ($state eq 'copies') {
			$state = 'unlink';
			return "SELECT encode(hash, 'hex') || '.' || copy_id"
				. " FROM xet.gc_copies($batch)";
		}

		if ($state eq 'unlink') {
			@copies = split(/\n/, $answer) if defined $answer;

			if (@copies) {
				my $copy = shift @copies;

				unlink("$dir/copies/$copy");
				push @done, $copy;
				return undef;
			}

			$state = 'end';

			if (@done) {
				$count{'copies removed'} += @done;
				return removed_statement(@done);
			}
		}

		$actor->{open} = 0;
		$actor->{over} = 1;

		return undef;
	};
}

sub removed_statement {
	my (@copies) = @_;

	my (@hashes, @copy_ids);

	for (@copies) {
		my ($hash, $copy_id) = split(/\./);
		push @hashes, "'\\x$hash'::bytea";
		push @copy_ids, $copy_id;
	}

	return 'SELECT copies FROM xet.gc_removed(ARRAY['
		. join(', ', @hashes) . '], ARRAY[' . join(', ', @copy_ids) . '])';
}

sub removed {
	my ($session, @copies) = @_;

	return $session->run(removed_statement(@copies));
}

# Quarantines a copy without a row, as "xet gc" and the server do, or continues
# with a copy that an earlier sweep has quarantined.  Copies of running uploads
# are skipped; the server recognizes them by the age of the file.

sub sweep {
	my ($actor) = @_;

	my @left = aside();
	my $late = @left && rand() < 0.5 ? $left[rand(@left)] : undef;
	my @all = copies();
	my $copy = $late // (@all ? $all[rand(@all)] : undef);
	my ($hash, $copy_id) = split(/\./, $copy // '');
	my $state = 'ask';
	my $these = defined $copy
		? "(ARRAY['\\x$hash'::bytea], ARRAY[$copy_id])" : '';

	return sub {
		my ($answer) = @_;

		if ($state eq 'ask') {
			if (!defined $copy || $owner{$copy}) {
				$actor->{over} = 1;
				return undef;
			}

			$state = $late ? 'settle' : 'aside';
			return 'SELECT count(*) FROM xet.'
				. ($late ? 'orphans' : 'copies_unknown') . $these;
		}

		if ($state eq 'aside') {
			if (!$answer || $owner{$copy}) {
				$actor->{over} = 1;
				return undef;
			}

			rename("$dir/copies/$copy", "$dir/aside/$copy");
			$state = 'settle';
			return "SELECT count(*) FROM xet.orphans$these";
		}

		if ($answer) {
			$count{orphans} += unlink("$dir/aside/$copy");

		} else {
			link("$dir/aside/$copy", "$dir/copies/$copy");
			unlink("$dir/aside/$copy");
			$count{'given back'}++;
		}

		$actor->{over} = 1;

		return undef;
	};
}

sub damage {
	my ($actor) = @_;

	my @all = grep { !$owner{$_} } copies();

	return sub {
		if (@all) {
			my $copy = $all[rand(@all)];

			$damaged{substr($copy, 0, 64)} = 1;
			unlink("$dir/copies/$copy");
			$count{damages}++;
		}

		$actor->{over} = 1;
		return undef;
	};
}

# --------------------------------------------------------------------------

sub kill_postgres {
	$count{'kills of PostgreSQL'}++;

	$pg->stop('immediate');
	drop_pool();

	for (@actors) {

		# the transaction in flight may have been committed

		end($_, 'died');
	}

	@actors = ();
	$pg->start();
	$main = session();
}

# Terminates the sessions of killed clients, and waits until they have ended.

sub wait_sessions {
	my $mine = join(', ', map { "'$_'" } grep { defined }
		map { $_->{pg} && $_->{pg}{backend} }
		grep { !$_->{ended} } @actors);
	my $pool = join(', ', map { "'$_'" } map { $_->{backend} } pool(), $main);
	my $known = join(', ', grep { $_ ne '' } $mine, $pool);

	query('SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity'
		. " WHERE datname = 'xet' AND pid::text NOT IN ($known)");

	for (1 .. 2000) {
		return if !query('SELECT count(*) FROM pg_stat_activity WHERE'
			. " datname = 'xet' AND pid::text NOT IN ($known)");

		select(undef, undef, undef, 0.002);
	}

	die "sessions that do not end\n";
}

my @pool;

sub pool { return @pool }

sub drop_pool {
	for (splice(@pool), $main) {
		kill('KILL', $_->{pid});
		$_->close();
	}

	undef $main;
}

sub session {
	return pop @pool if @pool;

	my $session = $pg->session(user => 'xet');

	$session->run("\\set VERBOSITY verbose\nSELECT");
	$session->run("SET lock_timeout = '3s'");
	$session->{backend} = $session->run('SELECT pg_backend_pid()');

	return $session;
}

sub give_back {
	my ($session) = @_;

	push @pool, $session;
}

sub query { return $main->run($_[0], 60) }

sub quote { return defined $_[0] ? "'$_[0]'" : 'NULL' }

sub whose { return defined $_[0] ? "false, '$_[0]'" : "true, ''" }

my %hex;

sub hex_of { return $hex{$_[0]} //= unpack('H*', sha256($_[0])) }

sub copies {
	opendir(my $folder, "$dir/copies") or die;

	return sort grep { !/^\./ } readdir($folder);
}

sub aside {
	opendir(my $folder, "$dir/aside") or die;

	return sort grep { !/^\./ } readdir($folder);
}

sub spew {
	open(my $file, '>', $_[0]) or die "$_[0]: $!\n";
	print $file "copy\n";
	close($file);
}

# Removes one of the database's safeguards.

sub break_it {
	my ($what) = @_;

	my %breaks = (
		stay => 'CREATE OR REPLACE FUNCTION xet.shard_stay(ids bigint[])'
			. " RETURNS void LANGUAGE sql AS 'SELECT'",
		notes => 'CREATE OR REPLACE FUNCTION xet.file_xorbs_gone() RETURNS'
			. ' trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO'
			. ' xet.gc_xorbs (xorb_id) SELECT DISTINCT g.xorb_id FROM'
			. ' gone g ON CONFLICT DO NOTHING; RETURN NULL; END $$',
		needs => 'DO $$ DECLARE t text; BEGIN SELECT replace('
			. "pg_get_functiondef(oid), 'WHERE f.id = ANY (mine) AND"
			. " NOT f.held', 'WHERE f.id = ANY (mine) OR false') INTO t"
			. " FROM pg_proc WHERE proname = 'gc_files'; SELECT"
			. " replace(t, 'AND NOT EXISTS (SELECT FROM xet.repo_files"
			. " rf WHERE rf.file_id = f.id)', '') INTO t;"
			. ' EXECUTE t; END $$'
	);

	die "BREAK is one of " . join(', ', sort keys %breaks) . "\n"
		unless $breaks{$what};

	$pg->sql($breaks{$what});
}
