package Test::Xet::Table;

# Copyright (C) the ngx_http_xet_module authors

# Runs real clients against a server that is a Hub.  Each row is one result of
# the test, with the name of the row.
#
#     my $t = Test::Xet->new(Test::Xet::Table::hub());
#     my $table = Test::Xet::Table->new($t);
#
#     $table->hf('create', {}, 'repos', 'create', 'me/m');
#     $table->program('curl', { prints => qr/hello/ }, 'curl', ...);
#     $table->script('Python', {}, $table->python(), 'hub_table.py', ...);
#
# Options of hf(), program() and script():
#
#     machine  name of the machine whose caches it uses; by default a new one
#     token    token of the client; hf_test by default, '' for none
#     env      { additional environment }
#
# Options of hf() and program():
#
#     fails    1: the program must fail
#     prints   regex for its output
#
# Options of script():
#
#     faults   { row => reason of a known failure }

use warnings;
use strict;

use File::Temp qw/ tempdir /;
use JSON::PP ();
use Test::More ();

use Test::Xet::Process qw/ root run_command slurp /;
use Test::Xet::Real;

# --------------------------------------------------------------------------
# the server

# Returns options of Test::Xet->new().  $who adds lines to the Hub's location,
# for instance to require tokens; by default every caller is "me".  $more adds
# locations.  Requests are logged, and /page/ has the files that a browser
# needs.

sub hub {
	my ($who, $more) = @_;

	$who //= 'xet_auth off; xet_hub_owners *;';
	$more //= '';

	my %log = Test::Xet::Real::log_bytes();
	my $npm = Test::Xet::Real::build() . '/npm/node_modules/';
	my $types = 'types { text/javascript js mjs; text/html html; '
		. 'application/wasm wasm; }';

	return (workers => 2, log => 'info', http => $log{http} . ' '
		. Test::Xet::Token::token_directive(), locations => <<"EOF");
location / {
            xet_hub on;
            xet_api_base /cas;
            client_max_body_size 200m;
            $who
        }

        %%CAS%%

        location /page/ { alias %%ROOT%%/t/clients/; $types }
        location /page/npm/ { alias $npm; $types }
$more
EOF
}

# Writes the two files of conf that make a server a mirror of another Hub, for a
# configuration that includes them.  $valid replaces cache times of one minute.

sub mirror {
	my ($t, $hub, $valid) = @_;

	my ($inner, $dir) = ('127.0.0.1:' . $t->port(8082), $t->dir());

	for my $name (qw/ xet_hub_mirror.conf xet_hub_upstream.conf /) {
		$t->write_file($name, slurp(root() . "/conf/$name")
			=~ s!https://huggingface\.co!$hub!gr
			=~ s!127\.0\.0\.1:8082!$inner!gr
			=~ s!\b1m;!$valid;!gr
			=~ s!/var/cache/nginx!$dir!gr);
	}
}

sub new {
	my ($class, $t) = @_;

	return bless { t => $t, dir => tempdir(CLEANUP => 1), mark => 0 },
		$class;
}

sub dir { return $_[0]->{dir} }

# Returns the requests since the last call, as [ method, path, status, bytes ].

sub requests {
	my ($self) = @_;

	my $log = $self->{t}->read_file('bytes.log');
	my $new = substr($log, $self->{mark});

	$self->{mark} = length($log);

	return map { [ (split(/ /))[0 .. 3] ] } split(/\n/, $new);
}

# Returns the number of bytes uploaded to matching paths, with Xet or without.

sub sent {
	my ($path, @requests) = @_;

	my $sum = 0;

	for (@requests) {
		$sum += $_->[3] if $_->[0] =~ /^P/ && $_->[1] =~ $path;
	}

	return $sum;
}

# --------------------------------------------------------------------------
# the clients

sub python {
	my $python = Test::Xet::Real::build()
		. '/clients/huggingface_hub/bin/python';

	die "no client in $python, run t/clients/setup.sh\n" unless -x $python;

	return $python;
}

sub hf {
	my ($self, $name, $o, @args) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return $self->program($name, $o, python() =~ s/python\z/hf/r, @args);
}

sub machine {
	my ($self, $name) = @_;

	return tempdir(DIR => $self->{dir}) unless defined $name;

	mkdir("$self->{dir}/$name");

	return "$self->{dir}/$name";
}

# Returns the whole environment of a client: the environment of the test without
# variables that clients read, and the variables for this server.

sub env {
	my ($self, $o) = @_;

	my $home = $self->machine($o->{machine});
	my $token = $o->{token} // 'hf_test';

	return (
		(map { $_ => $ENV{$_} } grep {
			!/^(?:HF|HUGGING|XET|GIT|https?_proxy|XDG)/i
		} keys %ENV),
		HOME => $home, HF_HOME => $home,
		HF_ENDPOINT => $self->{t}->url(''),
		$token ne '' ? (HF_TOKEN => $token) : (),
		HF_HUB_DISABLE_PROGRESS_BARS => 1, NO_COLOR => 1,
		HF_HUB_DISABLE_UPDATE_CHECK => 1,
		HF_XET_CLIENT_RETRY_BASE_DELAY => '100ms',
		%{ $o->{env} || {} }
	);
}

# Runs a program once; returns its output.

sub program {
	my ($self, $name, $o, @command) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	local %ENV = $self->env($o);

	my ($status, $printed) = run_command([ client_limit(), @command ],
		timeout => 600, dir => $o->{dir} || $self->{dir});

	Test::More::ok(!$status == !$o->{fails}
		&& (!$o->{prints} || $printed =~ $o->{prints}), $name)
		or Test::More::diag("$name: status $status: @command\n",
			$printed, $o->{prints} ? "wanted: $o->{prints}" : ());

	return $printed;
}

# Runs a script of t/clients, or a compiled program without a script, that
# reports its rows itself, see hub_row.py; returns the rows that have passed.

sub script {
	my ($self, $name, $o, $program, $script, @args) = @_;

	local %ENV = $self->env($o);
	my $errors = "$self->{dir}/" . ++$self->{scripts} . '.err';
	my ($ended, $seen, @passed) = (0, 0);

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	open(my $fh, '-|', 'sh', '-c', 'exec "$@" 2>> "$0"', $errors,
		client_limit(), $program,
		defined($script) ? root() . "/t/clients/$script" : (), @args)
		or die "$program: $!\n";

	while (defined(my $line = <$fh>)) {
		my $row = eval { JSON::PP::decode_json($line) };

		# clients print output of their own, including JSON

		if (ref($row) ne 'HASH' || !($row->{row} || $row->{end})) {
			print "# $line";
			next;
		}

		my $said = slurp($errors, 1) // '';

		$ended = 1 if $row->{end};
		push @passed, $row->{row}
			if result($name, $o, $row, substr($said, $seen));

		$seen = length($said);
	}

	Test::More::ok(close($fh) && $ended, "$name: completed")
		or Test::More::diag("status $?\n",
			substr(slurp($errors, 1) // '', $seen));

	return @passed;
}

# Runs a script on a page of the server, in a browser.

sub page {
	my ($self, $name, $o, $browser, $command) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$browser->open($self->{t}->url('/page/hub_page.html'));

	my $told = eval { $browser->js("run('$command')") };

	result($name, $o, $_, '') for @{ $told || [] };

	Test::More::ok($told && $told->[-1]{end}, "$name: completed")
		or Test::More::diag($@);
}

# Reports a row as a result of the test.

sub result {
	my ($name, $o, $row, $said) = @_;

	return 0 if $row->{end};

	my $fault = $o->{faults}{$row->{row}};

	no warnings 'once';
	local $main::TODO = $fault if $fault;
	local $Test::Builder::Level = $Test::Builder::Level + 2;

	Test::More::ok($row->{ok}, "$name: $row->{row}")
		or Test::More::diag($row->{said}, "\n", $said);

	return $row->{ok};
}

1;
