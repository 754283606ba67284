package Test::Xet::Failover;

# Copyright (C) the ngx_http_xet_module authors

# Runs a primary and its standby, which change roles during uploads and reads.
# All acknowledged uploads are recorded.
#
#     my $f = Test::Xet::Failover->new($t);     # a Test::Xet, not yet run
#
#     $f->start();
#     my $round = $f->round();                  # kill, promote, check, rebuild
#     my $end = $f->stop();
#
# The result of a round:
#
#     writes        seconds from the kill until an upload is acknowledged that
#                   began after the kill
#     acknowledged  number of files acknowledged in the round
#     lost          acknowledged files that can't be read
#     data, errors  successful and failed requests for a data URL
#     reading       wrong responses to reads

use warnings;
use strict;

use parent qw/ Test::Xet::Crowd /;

use Fcntl qw/ SEEK_SET /;
use File::Path qw/ remove_tree /;
use Time::HiRes qw/ sleep time /;

use Test::Xet::HTTP;
use Test::Xet::Process qw/ root slurp spew wait_for /;

# Options:
#
#     uploads  number of processes that upload, 2
#     reads    number of processes that read, 1
#     rewind   rebuild the old primary by pg_rewind, else by pg_basebackup
#     standby  0: reads use only the primary

sub new {
	my ($class, $t, %o) = @_;

	my $dir = $t->dir();

	return $class->SUPER::new(t => $t, dir => $dir, uploads => 2,
		reads => 1, standby => 1, offset => 0, %o, files => {
			history => "$dir/history", data => "$dir/data.log",
			url => "$dir/data.url", reading => "$dir/reading.log"
		});
}

# Returns settings of both PostgreSQL servers, so that a killed server can be
# rewound and can fetch the WAL that it missed.

sub pg_conf {
	return "wal_log_hints = on\nwal_keep_size = 64MB\n";
}

# Returns the configuration of docs/scaling.md, with our socket folders instead
# of its hosts.  Their order does not depend on which server is the primary.

sub directives {
	my ($self) = @_;

	my ($block) = slurp(root() . '/docs/scaling.md')
		=~ /^## A standby\n.*?^```nginx\n(.*?)^```/ms
		or die "docs/scaling.md has no configuration\n";

	$block =~ s!\bdb-a,db-b\b!$self->{dir}/pg,$self->{dir}/sb!g == 2
		or die "docs/scaling.md names other hosts\n";

	my %directives = $block =~ /^(xet_postgres\w*)\s+([^;]+);/mg;

	delete $directives{xet_postgres_read} unless $self->{standby};

	return %directives;
}

sub primary { return $_[0]->{primary} }
sub follower { return $_[0]->{follower} }

# Starts PostgreSQL and nginx; load() starts the clients.

sub start {
	my ($self) = @_;

	my $t = $self->{t};

	$self->{primary} = $t->pg();
	$self->{primary}->start() unless $self->{primary}->pid();

	$self->follow("$self->{dir}/sb");

	$t->write_conf(undef, directives => { $self->directives() });
	$t->nginx()->run();

	$self->wait_writes(0) // die "no uploads at first\n";
	$self->sign();
}

sub load {
	my ($self) = @_;

	$self->fork_off(\&uploader, "uploader$_") for 1 .. $self->{uploads};
	$self->fork_off(\&reader, "reader$_") for 1 .. $self->{reads};
	$self->fork_off(\&fetcher, 'fetcher');
}

# Starts a standby in this folder, and makes commits wait for it.

sub follow {
	my ($self, $dir) = @_;

	my $primary = $self->{primary};

	remove_tree($dir, { safe => 0 });

	$self->{follower} = $primary->standby($dir);
	$self->{follower}->start();

	$primary->synchronous('*');

	wait_for(30, sub { $primary->sql('SELECT count(*) FROM'
		. " pg_stat_replication WHERE sync_state = 'sync'") })
		or die "no synchronous standby:\n" . $self->{follower}->log();
}

# Rebuilds the old primary, whose WAL may end with records that the new one
# never received.

sub rewind {
	my ($self, $old) = @_;

	my $new = $self->{primary};
	my $conf = slurp($old->data() . '/postgresql.conf');

	# before a checkpoint, the new primary's control file has the old
	# timeline, and pg_rewind, which compares timelines, would do nothing

	$new->sql('CHECKPOINT', db => 'postgres');

	$old->command([ "$old->{bin}/pg_rewind", '-D', $old->data(),
		'--no-sync',
		'--source-server', "host=$new->{dir} user=postgres"
		. ' dbname=postgres' ], timeout => 120);

	# pg_rewind has copied the settings of the other server

	$conf =~ s/^primary_conninfo.*\n//mg;
	$conf .= "primary_conninfo = 'host=$new->{dir} user=postgres'\n"
		. "wal_retrieve_retry_interval = 100ms\n";

	spew($old->data() . '/postgresql.conf', $conf);
	spew($old->data() . '/postgresql.auto.conf', '');
	spew($old->data() . '/standby.signal', '');

	$self->{follower} = $old;
	$old->start();
	$new->synchronous('*');

	wait_for(30, sub { $new->sql('SELECT count(*) FROM'
		. " pg_stat_replication WHERE sync_state = 'sync'") })
		or die "no synchronous standby:\n" . $old->log();
}

# --------------------------------------------------------------------------

sub round {
	my ($self, %o) = @_;

	my ($old, $new) = @$self{qw/ primary follower /};
	my $before = $self->{offset};

	$self->sign();
	sleep($o{before} // 0.5);

	my $killed = time();

	$old->crash();
	sleep($o{away} // 0);

	$self->{promoted} = time();
	$new->promote();
	@$self{qw/ primary follower /} = ($new, undef);

	my $writes = $self->wait_writes($killed, 60);
	my @acked = $self->acknowledged();
	my @lost = map { "$$_[0], acknowledged " . ($killed - $$_[2])
		. ' s before the kill' } grep { !$self->readable($_) } @acked,
		$self->some($before, 20);

	my ($fetched, $errors) = $self->data();

	if ($self->{rewind} && ++$self->{turns} % 2) {
		$self->rewind($old);

	} else {
		$self->follow($old->{dir});
	}

	return {
		writes => $writes, acknowledged => scalar @acked,
		lost => \@lost, data => $fetched, errors => $errors,
		reading => $self->misread()
	};
}

# Ends the load and checks every file that was ever acknowledged.

sub stop {
	my ($self) = @_;

	$self->quit();

	my @all = map { [ split ] } split(/\n/, slurp($self->{history}));
	my @lost = grep { !$self->readable($_) } @all;

	return { acknowledged => scalar @all, lost => \@lost,
		reading => $self->misread() };
}

# Returns the seconds from this time until an upload is acknowledged that was
# sent after it; undef if there is none.

sub wait_writes {
	my ($self, $since, $seconds) = @_;

	my $t = $self->{t};
	my $end = time() + ($seconds || 30);
	my $begin = $since || time();

	while (time() < $end) {
		my $sent = time();
		my $n = $self->fresh();
		my $r = $t->put('/api/v1/files', body($n), {}, timeout => 20);

		if ($r->{status} == 200) {
			$self->note($r, $n);
			return time() - $begin;
		}

		sleep(0.1);
	}

	return undef;
}

# Returns the files acknowledged since the last call, as [ hash, name ]; body()
# makes the bytes from the name.

sub acknowledged {
	my ($self) = @_;

	open(my $in, '<', $self->{history}) or die "$!\n";
	seek($in, $self->{offset}, SEEK_SET);

	my @lines;

	while (my $line = <$in>) {
		last unless $line =~ /\n\z/;
		$self->{offset} += length($line);
		push @lines, [ split(' ', $line) ];
	}

	return @lines;
}

# Returns n random files of those acknowledged before an offset of the record.

sub some {
	my ($self, $end, $n) = @_;

	return () unless $end;

	my @all = map { [ split ] } split(/\n/, substr(slurp($self->{history}),
		0, $end));

	return map { $all[rand(@all)] } 1 .. $n;
}

sub readable {
	my ($self, $file) = @_;

	my ($hash, $name) = @$file;
	my $r;

	# a 503 says nothing about the file: retry

	wait_for(20, sub {
		$r = $self->{t}->get("/api/v1/files/$hash", {}, timeout => 20);
		return $r->{status} && $r->{status} < 500;
	});

	return $r->{status} == 200 && $r->{body} eq body($name);
}

# Gets a signed URL of a range for fetcher().  The URL stays valid without
# PostgreSQL.

sub sign {
	my ($self) = @_;

	my $t = $self->{t};

	open(my $in, '<', $self->{history}) or die "$!\n";
	my ($hash) = split(' ', scalar <$in>);

	my $r = $t->get("/api/v2/reconstructions/$hash", {}, timeout => 20);
	die "no plan: $r->{status}\n" unless $r->{status} == 200;

	my ($entry) = map { @$_ } values %{ $r->json()->{xorbs} };
	my ($path) = $entry->{url} =~ m!//[^/]+(/.*)!;
	my $range = $entry->{ranges}[0]{bytes};

	spew("$self->{url}.new", "$path bytes=$range->{start}-$range->{end}\n");
	rename("$self->{url}.new", $self->{url}) or die "$!\n";
}

# Returns the numbers of good and failed data requests since the last call.

sub data {
	my ($self) = @_;

	my %n = (ok => 0, bad => 0);

	$n{$_}++ for split(/\n/, substr(slurp($self->{data}),
		$self->{fetched} || 0));
	$self->{fetched} = -s $self->{data};

	return (delete $n{ok}, $n{bad});
}

# Returns the wrong responses to reads of acknowledged files since the last
# call.

sub misread {
	my ($self) = @_;

	my $log = slurp($self->{reading});
	my @new = split(/\n/, substr($log, $self->{misread} || 0));

	$self->{misread} = length($log);

	return \@new;
}

# --------------------------------------------------------------------------
# processes

sub uploader {
	my ($self) = @_;

	my $n = $self->fresh();
	my $r = Test::Xet::HTTP->request($self->{t}->port(), 'PUT',
		'/api/v1/files', {}, body($n), timeout => 30);

	$self->note($r, $n) if $r->{status} && $r->{status} == 200
		&& !$r->{error};

	sleep($r->{status} == 200 ? 0.15 : 0.1);
}

# Records a file; called once the client has the response.

sub note {
	my ($self, $r, $name) = @_;

	my $json = eval { $r->json() } || {};

	$self->tell('history', "$json->{hash} $name " . time());
}

# Reads an acknowledged file.  The response must be 200, or 503 while no
# database server can respond; never 404.

sub reader {
	my ($self) = @_;

	my $line = $self->any_line('history') // return sleep(0.05);
	my ($hash, $name) = split(' ', $line);
	my $route = rand() < 0.5 ? 'v1/files' : 'v2/reconstructions';
	my $r = Test::Xet::HTTP->request($self->{t}->port(), 'GET',
		"/api/$route/$hash", {}, undef, timeout => 30);

	my $status = $r->{status} || 0;
	my $good = $status == 503 || $status == 200
		&& ($route ne 'v1/files' || $r->{body} eq body($name)
			|| $r->{error});

	$self->tell('reading', "$route $hash: $status " . ($r->{error} // ''))
		if !$good;

	sleep(0.05);
}

sub fetcher {
	my ($self) = @_;

	my ($path, $range) = split(' ', slurp($self->{url}));
	my $r = Test::Xet::HTTP->request($self->{t}->port(), 'GET', $path,
		{ Range => $range }, undef, timeout => 10);

	$self->tell('data', $r->{status} && $r->{status} == 206 && !$r->{error}
		? 'ok' : 'bad');

	sleep(0.03);
}

sub body { return Test::Xet::Crowd::body($_[0], 5000) }

1;
