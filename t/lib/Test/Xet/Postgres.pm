package Test::Xet::Postgres;

# Copyright (C) the ngx_http_xet_module authors

# Runs a private PostgreSQL cluster on a Unix socket.  The cluster is copied
# from a template cluster that has the schema and is built once per schema
# version.

use warnings;
use strict;

use Digest::SHA;
use Fcntl qw/ :flock /;
use File::Path qw/ make_path remove_tree /;
use File::Temp qw/ tempdir /;

use Test::Xet::Process qw/
	build_dir children cmdline owned reap run_command slurp spawn
	spew wait_for
/;
use Test::Xet::Postgres::Session;

# version of the template: raise it when make_template() or init() change

my $recipe = 1;

# Options:
#
#     dir      short path for the cluster, its socket and its log
#     durable  1: fsync on
#     conf     additional lines of postgresql.conf
#     net      a Test::Xet::Net whose machines may connect, by TCP
#     empty    1: no schema, a cluster as initdb creates it

sub new {
	my ($class, %o) = @_;

	my $self = bless {
		dir => $o{dir}, bin => bin(), user => user(),
		durable => $o{durable}, conf => $o{conf} || '',
		net => $o{net}
	}, $class;

	make_path($self->{dir});

	if ($> == 0) {
		my ($uid, $gid) = (getpwnam($self->{user}))[2, 3];
		chown($uid, $gid, $self->{dir});
	}

	if ($o{empty}) {
		$self->init();

	} else {
		$self->copy_template();
	}

	$self->configure();

	return $self;
}

# Returns a copy of the cluster in its present state.  With "standby", the copy
# keeps that state, as a standby that lags behind.

sub copy {
	my ($self, $dir, %o) = @_;

	my $copy = bless { dir => $dir, bin => $self->{bin},
		user => $self->{user}, conf => '' }, ref $self;

	mkdir($dir) or die "$dir: $!\n";

	if ($> == 0) {
		my ($uid, $gid) = (getpwnam($self->{user}))[2, 3];
		chown($uid, $gid, $dir);
	}

	$self->command([ "$self->{bin}/pg_basebackup", '-h', $self->{dir},
		'-U', 'postgres', '-D', $copy->data(), '-X', 'stream',
		'-c', 'fast', '--no-sync' ], timeout => 120);

	$copy->configure();
	spew($copy->data() . '/standby.signal', '') if $o{standby};

	return $copy;
}

# Returns a standby of this cluster, which follows the primary once started.
# synchronous() makes commits wait for a standby.

sub standby {
	my ($self, $dir, %o) = @_;

	my $standby = $self->copy($dir, standby => 1);

	# undo the primary's own setting: after its promotion, a standby would
	# otherwise wait for a standby of its own

	spew($standby->data() . '/postgresql.auto.conf', '');

	open(my $out, '>>', $standby->data() . '/postgresql.conf')
		or die "$!\n";
	print $out "primary_conninfo = 'host=$self->{dir} user=postgres'\n",
		"wal_retrieve_retry_interval = 100ms\n", $o{conf} || '';
	close($out);

	return $standby;
}

sub synchronous {
	my ($self, $names) = @_;

	$self->sql("ALTER SYSTEM SET synchronous_standby_names = '$names'",
		db => 'postgres');
	$self->sql('SELECT pg_reload_conf()', db => 'postgres');

	# commits wait only after the checkpointer has read the setting

	$self->sql('CHECKPOINT', db => 'postgres');
}

# Waits until a standby of this cluster has replayed all WAL.

sub followed {
	my ($self, $standby) = @_;

	my $lsn = $self->sql('SELECT pg_current_wal_lsn()');

	wait_for(20, sub { $standby->sql('SELECT pg_last_wal_replay_lsn() >= '
		. "'$lsn'::pg_lsn") eq 't' }) or die "no standby follows\n";
}

# Promotes a standby.

sub promote {
	my ($self) = @_;

	$self->sql('SELECT pg_promote()', db => 'postgres');
}

# Kills all processes of the cluster at the same time, as a crash of the machine
# would.

sub crash {
	my ($self) = @_;

	my @all = ($self->{pid}, children($self->{pid}));

	CORE::kill('STOP', $self->{pid});
	CORE::kill('KILL', @all);
	reap($self->{pid}, 5);

	$self->{pid} = undef;
}

sub bin {
	my @found = sort {
		($b =~ m!/(\d+)/bin!)[0] <=> ($a =~ m!/(\d+)/bin!)[0]
	} grep { -x "$_/initdb" } glob('/usr/lib/postgresql/*/bin');

	@found = grep { -x "$_/initdb" } split(/:/, $ENV{PATH}) unless @found;

	@found = ($ENV{XET_TEST_PG_BIN}) if $ENV{XET_TEST_PG_BIN};
	die "no PostgreSQL server programs found\n" unless @found;

	return $found[0];
}

# Returns the user that runs PostgreSQL, which refuses to run as root.

sub user {
	return (getpwuid($>))[0] || $> if $> != 0;
	return (grep { defined getpwnam($_) } qw/ postgres nobody /)[0];
}

sub data {
	return "$_[0]->{dir}/data";
}

sub socket_dir {
	return $_[0]->{dir};
}

sub log {
	return slurp("$_[0]->{dir}/postgres.log", 1) // '';
}

sub pid {
	return $_[0]->{pid};
}

# Returns the connection string of the module and the migrations.  Its role is
# not a superuser.

sub conninfo {
	my ($self) = @_;

	return "host=$self->{dir} user=xet dbname=xet" unless $self->{net};

	# a disconnected machine must notice it soon

	return 'host=' . $self->{net}->addr() . ' user=xet dbname=xet'
		. ' tcp_user_timeout=2000 keepalives_idle=1'
		. ' keepalives_interval=1 keepalives_count=2';
}

sub command {
	my ($self, $command, %o) = @_;

	my ($status, $out) = run_command($command, user => $self->{user}, %o);
	die "@$command failed ($status):\n$out\n" if $status;

	return $out;
}

sub init {
	my ($self) = @_;

	# segments of 1 MiB: copying 16 MiB of zeros is slow

	$self->command([ "$self->{bin}/initdb", '-A', 'trust', '-U', 'postgres',
		'-E', 'UTF8', '--locale=C', '--no-sync', '--wal-segsize=1',
		'-D', $self->data() ]);
}

sub configure {
	my ($self) = @_;

	my $fsync = $self->{durable} ? 'on' : 'off';
	my $addr = $self->{net} ? $self->{net}->addr() : '';

	if ($self->{net}) {
		open(my $hba, '>>', $self->data() . '/pg_hba.conf')
			or die "$!\n";
		print $hba 'host all all ' . $self->{net}->network()
			. " trust\n";
		close($hba);
	}

	open(my $out, '>>', $self->data() . '/postgresql.conf') or die "$!\n";
	print $out <<EOF;

listen_addresses = '$addr'
unix_socket_directories = '$self->{dir}'
fsync = $fsync
max_connections = 60
shared_buffers = 16MB
max_wal_size = 64MB
jit = off
log_min_messages = info
log_line_prefix = '%m [%p] '
$self->{conf}
EOF
	close($out);
}

sub start {
	my ($self) = @_;

	die "PostgreSQL runs already\n" if $self->{pid};

	my $data = $self->data();
	$self->{pid} = spawn([ "$self->{bin}/postgres", '-D', $data ],
		user => $self->{user}, death => 'QUIT',
		output => "$self->{dir}/postgres.log",
		env => { LC_ALL => 'C' });

	my $ready = wait_for(30, sub {
		my $status = reap($self->{pid}, 0);

		if (defined $status) {
			$self->{pid} = undef;
			die "PostgreSQL does not start ($status):\n"
				. $self->log() . "\n";
		}

		return (slurp("$data/postmaster.pid", 1) // '')
			=~ /\A$self->{pid}\n.*^ready\b/ms;
	});

	die "PostgreSQL is not ready:\n" . $self->log() . "\n" unless $ready;
}

# Stops PostgreSQL.  The mode is fast (aborts sessions), smart (waits for
# sessions), or immediate (as in a crash: the next start recovers).

sub stop {
	my ($self, $mode) = @_;

	return unless $self->{pid};

	$self->thaw();

	my $signal = { fast => 'INT', smart => 'TERM', immediate => 'QUIT' }
		->{ $mode || 'fast' } or die "unknown mode $mode\n";

	CORE::kill($signal, $self->{pid});

	my $status = reap($self->{pid}, 20);

	if (!defined $status) {
		$self->kill();
		die "PostgreSQL does not stop\n";
	}

	$self->{pid} = undef;
}

sub restart {
	my ($self, $mode) = @_;

	$self->stop($mode);
	$self->start();
}

# Stops PostgreSQL without a shutdown, at the end of a test.

sub kill {
	my ($self) = @_;

	return unless $self->{pid} && owned($self->{pid});

	$self->thaw();

	my @children = children($self->{pid});

	CORE::kill('QUIT', $self->{pid});

	if (!defined reap($self->{pid}, 5)) {
		CORE::kill('KILL', $self->{pid}, @children);
		reap($self->{pid}, 5);
	}

	$self->{pid} = undef;
}

# Simulates a database machine that hangs: the kernel accepts connections, but
# no process responds.  With backends => 1 only the clients' sessions hang.

sub freeze {
	my ($self, %o) = @_;

	my @pids = children($self->{pid});
	@pids = grep { cmdline($_) =~ /^postgres: \S+ \S+ \[local\]/ } @pids
		if $o{backends};
	@pids = ($self->{pid}, @pids) unless $o{backends};

	CORE::kill('STOP', $_) for @pids;
	push @{ $self->{frozen} }, @pids;

	return scalar @pids;
}

sub thaw {
	my ($self) = @_;

	CORE::kill('CONT', $_) for @{ delete $self->{frozen} || [] };
}

# Returns the process ids of a user's sessions, except the test's own session.

sub backends {
	my ($self, $user) = @_;

	return split(/\n/, scalar $self->sql("SELECT pid FROM pg_stat_activity"
		. " WHERE usename = '" . ($user || 'xet') . "'"
		. " AND pid <> pg_backend_pid() ORDER BY pid"));
}

# Returns how many statements of a user wait for a lock.

sub blocked {
	my ($self, $user) = @_;

	return scalar $self->sql("SELECT count(*) FROM pg_stat_activity"
		. " WHERE usename = '" . ($user || 'xet') . "'"
		. " AND wait_event_type = 'Lock'");
}

sub terminate {
	my ($self, $user) = @_;

	return scalar $self->sql("SELECT count(pg_terminate_backend(pid))"
		. " FROM pg_stat_activity WHERE usename = '"
		. ($user || 'xet') . "'");
}

# Runs a query as superuser.  Returns rows as psql prints them unaligned, "a|b":
# one string or, in list context, a list.  Dies if the query fails.

sub sql {
	my ($self, $query, %o) = @_;

	my $out = $self->command([ "$self->{bin}/psql", '-XAtq', '-v',
		'ON_ERROR_STOP=1', '-h', $self->{dir},
		'-U', $o{user} || 'postgres', '-d', $o{db} || 'xet',
		$o{file} ? ('-f', $query) : ('-c', $query) ],
		env => { PGOPTIONS => $o{options} || '',
			PGCONNECT_TIMEOUT => 10 },
		timeout => $o{timeout} || 30);

	chomp($out);

	return wantarray ? split(/\n/, $out) : $out;
}

# Options of a session whose plans are like those of the module's sessions.

our $session = join(' ', map { "-c $_" } 'enable_seqscan=off',
	'enable_bitmapscan=off', 'plan_cache_mode=force_generic_plan');

# Returns the number of pages that a function call reads, with a cached plan.

sub buffers {
	my ($self, $call) = @_;

	my $json = join("\n", $self->sql(join('; ',
		"PREPARE p AS SELECT FROM xet.$call", ('EXECUTE p') x 7,
		'EXPLAIN (ANALYZE, BUFFERS, FORMAT json) EXECUTE p'),
		options => $session, timeout => 60));
	my ($hit, $read) = map { $json =~ /"Shared $_ Blocks": (\d+)/ }
		qw/ Hit Read /;

	return defined $hit ? $hit + $read : "$json: no";
}

# Opens a session that stays open; see Test::Xet::Postgres::Session.

sub session {
	my ($self, %o) = @_;

	return Test::Xet::Postgres::Session->new($self, %o);
}

sub lock {
	my ($self, $table, $mode) = @_;

	my $session = $self->session();

	$session->run('BEGIN');
	$session->run("LOCK TABLE $table IN "
		. ($mode || 'ACCESS EXCLUSIVE') . ' MODE');

	return $session;
}

# Returns the number of rows of each table of the schema.

sub rows {
	my ($self) = @_;

	my @tables = $self->sql("SELECT relname FROM pg_class c"
		. " JOIN pg_namespace n ON n.oid = relnamespace"
		. " WHERE nspname = 'xet' AND relkind = 'r' ORDER BY relname");

	return {} unless @tables;

	return { map { split /\|/ } $self->sql(join(' UNION ALL ',
		map { "SELECT '$_', count(*) FROM xet.\"$_\"" } @tables)) };
}

# Starts to count the rows inserted into a table, including those rolled back;
# inserted() returns the number.

sub count_inserts {
	my ($self, $table) = @_;

	$self->sql($_) for 'CREATE SEQUENCE public.inserts',
		'CREATE FUNCTION public.count_insert() RETURNS trigger'
		. ' LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN'
		. " PERFORM nextval('public.inserts'); RETURN NEW; END \$\$",
		"CREATE TRIGGER count_insert BEFORE INSERT ON $table"
		. ' FOR EACH ROW EXECUTE FUNCTION public.count_insert()';
}

sub inserted {
	my ($self) = @_;

	return scalar $self->sql('SELECT CASE WHEN is_called THEN last_value'
		. ' ELSE 0 END FROM public.inserts');
}

# --------------------------------------------------------------------------

sub template_key {
	my ($self) = @_;

	my $sha = Digest::SHA->new(256);
	my $version = (run_command([ "$self->{bin}/postgres", '-V' ]))[1];

	$sha->add("$recipe $version");

	for my $file (sort glob(build_dir() . '/sql/*')) {
		next unless -f $file;
		$sha->add("$file\n" . slurp($file));
	}

	return 'pg-' . substr($sha->hexdigest(), 0, 12) . "-$>";
}

sub copy_template {
	my ($self) = @_;

	my $base = $ENV{XET_TEST_TEMPLATE} || build_dir() . '/t-template';

	if (!eval { make_path($base); -w $base }) {
		$base = "/tmp/xet-t-template-$>";
		make_path($base, { mode => 0700 });
	}

	my $template = "$base/" . $self->template_key();

	open(my $lock, '>>', "$base/lock") or die "$base/lock: $!\n";

	# takes a shared lock to copy, and an exclusive lock to make a template
	# or remove old ones; the process that makes a template keeps the
	# exclusive lock until it has copied the template, so that no other
	# process removes it

	flock($lock, LOCK_SH);

	if (!-d $template) {
		flock($lock, LOCK_UN);
		flock($lock, LOCK_EX);
		$self->make_template($base, $template) if !-d $template;
	}

	my ($status, $out) = run_command([ 'cp', '-a', '--reflink=auto',
		"$template/.", $self->data() ]);
	die "cannot copy $template: $out\n" if $status;

	close($lock);
}

sub make_template {
	my ($self, $base, $template) = @_;

	my $dir = tempdir('xtpl-XXXXXX', DIR => '/tmp', CLEANUP => 1);
	chmod(0755, $dir);

	my $pg = Test::Xet::Postgres->new(dir => "$dir/pg", empty => 1);

	$pg->start();
	$pg->sql('CREATE ROLE xet LOGIN', db => 'postgres');
	$pg->sql('CREATE DATABASE xet OWNER xet', db => 'postgres');
	$pg->migrate();
	$pg->sql('VACUUM FREEZE ANALYZE');
	$pg->sql('CHECKPOINT');
	$pg->stop();

	# the settings of this run must not be in copies of the template

	my $conf = $pg->data() . '/postgresql.conf';
	my $text = slurp($conf);
	$text =~ s/\nlisten_addresses = ''\n.*//s;
	spew($conf, $text);

	for my $old (glob("$base/pg-*-$>")) {
		remove_tree($old);
	}

	remove_tree("$template.new");

	my ($status, $out) = run_command([ 'cp', '-a', $pg->data(),
		"$template.new" ]);
	die "cannot make $template: $out\n" if $status;

	rename("$template.new", $template) or die "$template: $!\n";
}

sub migrate {
	my ($self) = @_;

	my $xet = $ENV{XET_TEST_CLI} || build_dir() . '/xet';

	die "$xet: not there, run make cli\n" unless -x $xet;

	my ($status, $out) = run_command([ $xet, 'migrate',
		'--sql', build_dir() . '/sql',
		'--postgres', $self->conninfo() ]);

	die "xet migrate failed:\n$out\n" if $status;
}

sub DESTROY {
	my ($self) = @_;

	local ($?, $@, $!);
	$self->kill();
}

1;
