"""The network of mlp2.sbp under torchrun: one forward pass on two ranks."""
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.set_num_threads(1)
net = torch.nn.Sequential(
    torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)
)
with torch.no_grad():
    net(torch.randn(1, 2, 8))
dist.destroy_process_group()
